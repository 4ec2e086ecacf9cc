"""What every reader shares: its options, its bad rows, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from setrnn.data.example import Example
from setrnn.data.labels import LabelVocabulary
from setrnn.errors import BadRowError, ConfigError, DataError

SPLIT_NAMES = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}

OnBadRow = Literal["stop", "skip"]


@dataclass(frozen=True)
class KnownFields:
    """Which fields hold labels known to be right and wrong, and what a model can know."""

    present_field: str | None
    absent_field: str | None
    labels: LabelVocabulary
    max_labels: int | None = None  # of a set

    @property
    def flags(self) -> dict[str, str]:
        """The fields that are given, with the option that names each."""
        named = {self.present_field: "--present-field", self.absent_field: "--absent-field"}
        return {name: flag for name, flag in named.items() if name is not None}


@dataclass(frozen=True)
class ReadOptions:
    """How to read rows: which field is which, and what is asked of them.

    `text_field` may name several fields, as in "title,text": they are joined by a newline.
    `any_suffix` takes a lone file whatever it is called: the user named the format.
    """

    id_field: str = "id"
    text_field: str = "text"
    labels_field: str = "labels"
    features_field: str = "features"
    label_separator: str = ";"
    require_labels: bool = True
    max_row_bytes: int = 10_000_000
    any_suffix: bool = False
    known: KnownFields | None = None

    def __post_init__(self) -> None:
        """Refuse options under which nothing can be read."""
        if not all(self.text_fields):
            raise ConfigError(f"The text field is empty in '{self.text_field}'. Name a field.")
        if not self.label_separator:
            raise ConfigError("The label separator is empty. Give one, such as ';'.")
        if self.max_row_bytes < 1:
            raise ConfigError(f"max_row_bytes must be at least 1, got {self.max_row_bytes}.")

    @property
    def text_fields(self) -> tuple[str, ...]:
        """The fields that make up the text, in order."""
        return tuple(name.strip() for name in self.text_field.split(","))

    @property
    def list_fields(self) -> tuple[str, ...]:
        """The fields that hold several strings, each once."""
        known = () if self.known is None else self.known.flags
        return tuple(dict.fromkeys((self.labels_field, self.features_field, *known)))


@dataclass
class BadRows:
    """The rows that could not be read: raised at once, or counted and passed over."""

    on_bad_row: OnBadRow = "stop"
    n_skipped: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, error: BadRowError) -> None:
        """Raise the error, or count it and keep the first five to show at the end."""
        if self.on_bad_row == "stop":
            raise error
        self.n_skipped += 1
        if len(self.first) < 5:
            self.first.append(str(error))


@dataclass(frozen=True)
class Split:
    """One part of a dataset: the files it lies in and a way to stream it, any number of times."""

    files: tuple[Path, ...]
    read: Callable[[BadRows], Iterator[Example]]


# A reader looks at a file or folder and returns the splits it finds there in its format:
# none if the place holds nothing of the kind; a lone file is the split "train".
Finder = Callable[[Path, ReadOptions], dict[str, Split]]

# How a reader of one file a split streams it.
FileReader = Callable[[Path, ReadOptions, BadRows], Iterator[Example]]


def file_splits(
    place: Path, options: ReadOptions, suffixes: tuple[str, ...], read: FileReader
) -> dict[str, Split]:
    """Find one file a split, by its suffix, and tie each to its reader."""
    files = find_files(place, ("",) if options.any_suffix and place.is_file() else suffixes)
    return {split: Split((path,), partial(read, path, options)) for split, path in files.items()}


def find_files(place: Path, suffixes: tuple[str, ...]) -> dict[str, Path]:
    """Find one file a split, by its suffix: `place` itself, or train/valid/test inside it."""
    if place.is_file():
        return {"train": place} if place.name.lower().endswith(suffixes) else {}
    found: dict[str, Path] = {}
    for stem, split in SPLIT_NAMES.items():
        for suffix in suffixes:
            path = place / f"{stem}{suffix}"
            if path.is_dir():
                raise DataError(f"{path} is a folder where a file is meant. Rename or remove it.")
            if not path.is_file():
                continue
            if split in found:
                raise DataError(
                    f"{place} holds the split '{split}' twice: {found[split].name} and "
                    f"{path.name}. Remove or rename one."
                )
            found[split] = path
    return found


def plain_or_packed(path: Path) -> Path | None:
    """Find a file under its own name or with .gz added."""
    packed = path.with_name(f"{path.name}.gz")
    found = [candidate for candidate in (path, packed) if candidate.is_file()]
    if len(found) == 2:
        raise DataError(f"{path.parent} holds both {path.name} and {packed.name}. Remove one.")
    return found[0] if found else None


def file_stem(path: Path) -> str:
    """Name a file without its suffix: `train` for train.jsonl.gz."""
    return Path(path.name.removesuffix(".gz")).stem


def never_empty(split: Split, name: str) -> Split:
    """Refuse a split that yields no document, once it has been read to the end."""
    name = _file_names(split.files) or name

    def read(bad_rows: BadRows) -> Iterator[Example]:
        n_before = bad_rows.n_skipped
        examples = split.read(bad_rows)
        first = next(examples, None)
        if first is None:
            n_skipped = bad_rows.n_skipped - n_before
            if n_skipped == 0:
                raise DataError(f"{name} holds no documents. Add at least one row.")
            shown = f" First: {bad_rows.first[n_before]}" if n_before < len(bad_rows.first) else ""
            raise DataError(
                f"{name} holds no documents that can be read: {n_skipped} rows skipped.{shown}"
            )
        yield first
        yield from examples

    return Split(split.files, read)


def _file_names(files: tuple[Path, ...]) -> str:
    """Name the first file, and how many more there are."""
    if not files:
        return ""
    return files[0].name + (f" (and {len(files) - 1} more)" if len(files) > 1 else "")
