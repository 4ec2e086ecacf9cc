"""The places of data: globs, names that tell files apart, and what is wrong with a path."""

from __future__ import annotations

import difflib
import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from setrnn.data.prepared import is_prepared
from setrnn.data.read.lines import file_stem
from setrnn.errors import DataError, printable

# A synthetic newsroom, which `tools/make_newsroom.py` of the repository writes.
EMBEDDED = "newsroom"
EMBEDDED_FOLDER = Path(__file__).parents[1] / EMBEDDED


def expand_places(places: Iterable[str | Path]) -> list[str | Path]:
    """Replace each glob, such as "exports/*.csv", by the files that it matches, in their order."""
    expanded: list[str | Path] = []
    for place in places:
        if not any(each in str(place) for each in "*?[") or Path(place).exists():
            expanded.append(place)
            continue
        found = sorted(glob.glob(str(place), recursive=True))  # noqa: PTH207 (absolute ones too)
        if not found:
            raise DataError(f"No file matches {printable(str(place))}. Check the pattern.")
        expanded += found
    if not expanded:
        raise DataError("There is no data to read. Name a file, a folder or a dataset.")
    path, n_times = Counter(Path(place).absolute() for place in expanded).most_common(1)[0]
    if n_times > 1:
        raise DataError(f"{printable(str(path))} is given twice. Leave out one.")
    return expanded


def name_places(places: Sequence[Path]) -> list[str]:
    """Return a name for each place: its stem, after its folders if another has the same stem.

    Example:
        >>> name_places([Path(f) for f in ("2024/news.csv", "2025/news.csv", "2025/blogs.csv")])
        ['2024/news', '2025/news', 'blogs']
    """
    stems = [file_stem(place) for place in places]
    n_times = Counter(stems)
    folders = [place.absolute().parent for place in places]
    shared = os.path.commonpath(folders) if len(n_times) < len(stems) else ""
    return [
        stem if n_times[stem] == 1 else (folder / stem).relative_to(shared).as_posix()
        for stem, folder in zip(stems, folders, strict=True)
    ]


def check_place(path: Path, place: str) -> None:
    """Raise if a path, which the user wrote as `place`, is not a file or a folder of documents."""
    if not place or "\0" in place:
        raise DataError(
            f"'{printable(place)}' is not the name of a file. Give a file, a folder or a dataset."
        )
    if is_prepared(path):
        raise DataError(
            f"{path} is a prepared folder: it holds numbers, not documents. Use it with train and "
            "evaluate; other commands need the data that it was made from."
        )
    if path.is_file() or path.is_dir():
        return
    if path.exists():
        raise DataError(f"{path} is neither a file nor a folder. Save the documents to a file.")
    if not path.parent.is_dir():
        raise DataError(f"{path} does not exist: there is no folder {path.parent}. Check the path.")
    names = [sibling.name for sibling in path.parent.iterdir()]
    if path.name == place:
        names.append(EMBEDDED)
    close = difflib.get_close_matches(path.name, names, n=1)
    advice = f"Did you mean '{printable(close[0])}'?" if close else "Check the name."
    raise DataError(f"{path} does not exist. {advice}")
