"""Several files as one dataset: globs, folders of tables, and ids that occur in two files."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.read.printing import printable
from setrnn.data.read.reader import SPLIT_NAMES, BadRows, Split, file_stem
from setrnn.errors import DataError

N_SHOWN = 5  # files in a note
_WILDCARDS = "*?["


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
            are, "auto" for names only if an id occurs in two files.
    """
    if len(parts) == 1:
        return parts[0][1]
    prefixes = name_places([str(place) for place, _ in parts])
    splits = [split for _, split in parts]

    @cache
    def shared_id() -> tuple[str, str] | None:
        return _find_shared_id(splits, prefixes)

    def read(bad_rows: BadRows) -> Iterator[Example]:
        shared = shared_id() if id_prefix == "auto" else None
        if shared is not None:
            note_shared_id(*shared, bad_rows)
        has_prefix = id_prefix == "file" or shared is not None
        for prefix, split in zip(prefixes, splits, strict=True):
            yield from add_prefix(split.read(bad_rows), prefix if has_prefix else "")

    files = tuple(file for split in splits for file in split.files)
    return Split(files, read, tuple(zip(prefixes, splits, strict=True)), id_prefix)


def add_prefix(examples: Iterator[Example], prefix: str) -> Iterator[Example]:
    """Put a prefix in front of all ids, if it is not empty."""
    if not prefix:
        return examples
    return (replace(each, id=f"{prefix}:{each.id}") for each in examples)


def note_shared_id(name: str, prefix: str, bad_rows: BadRows) -> None:
    """Note an id that occurs in two files, and the prefix that it has in the second."""
    name, prefix = printable(name), printable(prefix)
    bad_rows.note(
        f"The id '{name}' occurs in two files: each id now begins with the name of its file, as in "
        f"'{prefix}:{name}'. To keep ids as they are: --id-prefix none."
    )


def _find_shared_id(splits: Sequence[Split], prefixes: Sequence[str]) -> tuple[str, str] | None:
    """Return the first id that occurs in two splits, and the prefix of the second; else None.

    This takes a pass over all documents. Ids are compared by their 64-bit hashes.
    """
    earlier: set[int] = set()
    for split, prefix in zip(splits, prefixes, strict=True):
        own = set()
        for example in split.read(BadRows("skip")):
            hashed = hash(example.id)
            if hashed in earlier:
                return example.id, prefix
            own.add(hashed)
        earlier |= own
    return None


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
