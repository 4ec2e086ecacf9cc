"""Several files as one dataset: globs, folders of tables, and ids that occur in two files."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.read.printing import printable
from setrnn.data.read.reader import SPLIT_NAMES, BadRows, Split, file_stem
from setrnn.errors import DataError

N_SHOWN = 5  # files in a note
_WILDCARDS = "*?["
_SHARED = "Two files have the same ids,"


def expand_places(places: Iterable[str | Path]) -> list[str | Path]:
    """Replace each glob, such as "exports/*.csv", by the files that it matches, in their order."""
    expanded: list[str | Path] = []
    for place in places:
        is_glob = any(each in str(place) for each in _WILDCARDS) and not Path(place).exists()
        if not is_glob:
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


def find_tables(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files of a folder that have one of the suffixes, by name; hidden ones are not."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.lower().endswith(suffixes) and path.name[0] != "." and path.is_file()
    )


def note_unread(splits: Mapping[str, Split], unread: Sequence[Path]) -> dict[str, Split]:
    """Note the files of a folder that are not read, because others are called train or test."""
    if not unread:
        return dict(splits)
    names = ", ".join(printable(path.name) for path in unread[:N_SHOWN])
    more = f" and {len(unread) - N_SHOWN:,} more" if len(unread) > N_SHOWN else ""
    text = (
        f"Only {', '.join(splits)} of {unread[0].parent} are read, not {names}{more}. To read "
        "other files too, name them."
    )

    def read(split: Split, bad_rows: BadRows) -> Iterator[Example]:
        bad_rows.note(text)
        return split.read(bad_rows)

    return {name: replace(split, read=partial(read, split)) for name, split in splits.items()}


def find_part(file: Path, files: Sequence[Path]) -> str:
    """Return the split that one of several files becomes.

    Files called train, valid and test are these splits if train is among them; all others are
    joined into one.
    """
    stems = [file_stem(each) for each in files]
    are_parts = "train" in stems and all(stem in SPLIT_NAMES for stem in stems)
    return SPLIT_NAMES[file_stem(file)] if are_parts else "train"


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

    return Split(tuple(file for split in splits for file in split.files), read, tuple(splits))


def _note_shared_id(name: str, prefix: str, bad_rows: BadRows) -> None:
    """Note the first id that occurs in two files."""
    if any(text.startswith(_SHARED) for text in bad_rows.notes):
        return
    name, prefix = printable(name), printable(prefix)
    bad_rows.note(
        f"{_SHARED} such as '{name}': in the second file it begins with the name of the file, as "
        f"in '{prefix}:{name}'. To keep ids as they are: --id-prefix none."
    )


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
