"""Several places as one: globs, and files that are joined into one split."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.read.lines import file_stem
from setrnn.data.read.reader import BadRows, Split
from setrnn.errors import DataError, printable

_SHARED = "Two files have the same ids,"


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
    paths = [Path(place).absolute() for place in expanded]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise DataError(f"{printable(str(twice))} is given twice. Leave out one.")
    if not expanded:
        raise DataError("There is no data to read. Name a file, a folder or a dataset.")
    return expanded


def join_splits(parts: Sequence[tuple[Path, Split]], id_prefix: str) -> Split:
    """Join the splits of several files or folders into one.

    Args:
        parts: each place with its split.
        id_prefix: "file" to put the file's name in front of each id, "none" to leave ids as they
            are, "auto" for names in front of those ids that an earlier file has too.
    """
    if len(parts) == 1:
        return parts[0][1]
    prefixes = name_places([str(place) for place, _ in parts])
    splits = [split for _, split in parts]

    def read(bad_rows: BadRows) -> Iterator[Example]:
        earlier: set[int] = set()  # the 64-bit hashes of ids
        for prefix, split in zip(prefixes, splits, strict=True):
            own = set()
            for example in split.read(bad_rows):
                own.add(hash(example.id))
                is_shared = id_prefix == "auto" and hash(example.id) in earlier
                if is_shared:
                    _note_shared_id(example.id, prefix, bad_rows)
                has_prefix = is_shared or id_prefix == "file"
                yield replace(example, id=f"{prefix}:{example.id}") if has_prefix else example
            earlier |= own

    return Split(tuple(file for split in splits for file in split.files), read)


def name_places(places: Sequence[str]) -> list[str]:
    """Return a name for each place: its stem, with as much of its folders as tells them apart.

    Example:
        >>> name_places(["2024/news.csv", "2025/news.csv", "2025/blogs.csv"])
        ['2024/news', '2025/news', 'blogs']
    """
    paths = [Path(place) for place in places]
    names = [file_stem(path) for path in paths]
    parents = [list(path.absolute().parent.parts) for path in paths]
    while len(set(names)) < len(names) and any(parents):
        is_shared = [names.count(name) > 1 for name in names]
        names = [
            f"{folders.pop()}/{name}" if repeated and folders else name
            for name, folders, repeated in zip(names, parents, is_shared, strict=True)
        ]
    return names


def _note_shared_id(name: str, prefix: str, bad_rows: BadRows) -> None:
    """Note the first id that occurs in two files."""
    if any(text.startswith(_SHARED) for text in bad_rows.notes):
        return
    name, prefix = printable(name), printable(prefix)
    bad_rows.note(
        f"{_SHARED} such as '{name}': in the second file it begins with the name of the file, as "
        f"in '{prefix}:{name}'. To keep ids as they are: --id-prefix none."
    )
