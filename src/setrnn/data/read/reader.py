"""What all readers share: options, bad rows, splits and formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from setrnn.data.example import Example, KnownLabels
from setrnn.data.hierarchy import Hierarchy
from setrnn.errors import BadRowError, ConfigError, DataError, printable
from setrnn.progress import log

SPLIT_NAMES = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
OnBadRow = Literal["stop", "skip"]
UnlabelledRows = Literal["stop", "skip", "empty"]
# The fields that say which labels are not known, and whether all others that are not given are.
UNKNOWN, COMPLETE = "unknown", "complete"
# The options that name columns, and the file of a split folder that keeps them.
COLUMNS = ("text_field", "labels_field", "id_field", "features_field", "label_separator")
COLUMNS_FILE = "columns.json"


@dataclass(frozen=True)
class ReadOptions:
    """How to read rows: which field is which, and what is required of them.

    Attributes:
        id_field: the field of the id; rows without one are numbered.
        text_field: the field of the text, or several, as in "title,text": they are joined by a
            newline.
        labels_field: the field of the labels.
        features_field: the field of the features.
        label_separator: the separator between labels in a CSV cell; "none" if each cell is one
            label.
        encoding: the encoding of lines that are not UTF-8, such as "cp1252"; None if all are.
        label_map: other names for labels; "" drops a label. None if there are none.
        hierarchy: the parents of labels; it may close the labels of documents. None if there is
            none.
        keep_columns: whether examples keep all columns of their rows.
        require_labels: whether labels are read; a row without such a field is a bad row.
        unlabelled_rows: what a row is whose cell of labels is empty, or null in JSON. "stop" raises
            DataError when all are counted; "skip" leaves them out, as not labelled yet; "empty"
            takes them as documents to which no label applies, as a list `[]` is always taken.
        max_row_bytes: longer rows are bad rows.
        merge_duplicates: whether documents with the same text become one, with the labels of all.
        sheet: the sheet of a workbook; the first if None.
        present_field: the field of labels known to be right; None if there is none.
        absent_field: the field of labels known to be wrong; None if there is none.
        check_known: raises DataError if a row's known labels cannot be used; the row is then a
            bad row.

    Example:
        >>> ReadOptions(text_field="title, body").text_fields
        ('title', 'body')
    """

    id_field: str = "id"
    text_field: str = "text"
    labels_field: str = "labels"
    features_field: str = "features"
    label_separator: str = ";"
    encoding: str | None = None
    label_map: Mapping[str, str] | None = None
    hierarchy: Hierarchy | None = None
    keep_columns: bool = False
    require_labels: bool = True
    unlabelled_rows: UnlabelledRows = "stop"
    max_row_bytes: int = 10_000_000
    merge_duplicates: bool = False
    sheet: str | None = None
    present_field: str | None = None
    absent_field: str | None = None
    check_known: Callable[[KnownLabels], None] | None = None

    def __post_init__(self) -> None:
        """Raise if nothing can be read with these options."""
        if not all(self.text_fields):
            raise ConfigError(f"The text field is empty in '{self.text_field}'. Name a field.")
        if not self.label_separator:
            raise ConfigError("The label separator is empty. Give one, such as ';'.")
        if self.max_row_bytes < 1:
            raise ConfigError(f"max_row_bytes must be at least 1, got {self.max_row_bytes}.")
        try:
            "a".encode(self.encoding or "utf-8")
        except LookupError:
            raise ConfigError(
                f"There is no encoding '{self.encoding}'. Try cp1252 or latin-1 for Western "
                "languages, utf-16, or save the file as UTF-8."
            ) from None

    @property
    def text_fields(self) -> tuple[str, ...]:
        """The fields that make up the text, in order."""
        return tuple(name.strip() for name in self.text_field.split(","))

    @property
    def known_fields(self) -> tuple[str, ...]:
        """The fields of known labels."""
        return tuple(name for name in (self.present_field, self.absent_field) if name is not None)

    @property
    def list_fields(self) -> tuple[str, ...]:
        """The fields that hold several strings, without repeats."""
        names = [self.labels_field, self.features_field, *self.known_fields]
        if self.require_labels:
            names.append(UNKNOWN)
        return tuple(dict.fromkeys(names))

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields that are read."""
        return (self.id_field, *self.text_fields, *self.list_fields, COMPLETE)


@dataclass
class BadRows:
    """Rows that cannot be read: the first one raises, or all are skipped and counted.

    Example:
        >>> bad_rows = BadRows("skip")
        >>> bad_rows.add("train.jsonl line 41", "is not JSON.")
        >>> bad_rows.n_skipped, bad_rows.first
        (1, ['train.jsonl line 41: is not JSON.'])
    """

    on_bad_row: OnBadRow = "stop"
    n_skipped: int = 0
    first: list[str] = field(default_factory=list)  # at most five messages
    n_unlabelled: int = 0
    first_unlabelled: str = ""  # where it is
    notes: list[str] = field(default_factory=list)  # what else a user should know of the reading

    def add(self, place: str, problem: object) -> None:
        """Raise an error, or count the row and keep the first five messages."""
        error = BadRowError(printable(place), printable(str(problem)))
        if self.on_bad_row == "stop":
            raise error
        self.n_skipped += 1
        if len(self.first) < 5:
            self.first.append(str(error))

    def note(self, text: str) -> None:
        """Keep a note for the user, once."""
        if text not in self.notes:
            self.notes.append(text)

    def report(self) -> None:
        """Log how many rows were skipped, the first few of them, and what else there is to know."""
        if self.n_skipped:
            log.warning(f"{self.n_skipped:,} rows could not be read and were skipped.")
        for text in [*(f"  {message}" for message in self.first), *self.notes]:
            log.info(text)


@dataclass(frozen=True)
class Split:
    """One part of a dataset: its files, and a function that streams it, any number of times."""

    files: tuple[Path, ...]
    read: Callable[[BadRows], Iterator[Example]]
    notes: tuple[str, ...] = ()  # what a user should know of the files


@dataclass(frozen=True)
class Format:
    """A data format: a reader for files of a suffix, or a function that finds splits.

    Attributes:
        suffixes: the suffixes of its files.
        read: streams one file that has such a suffix; a folder holds one for each split.
        finder: finds the splits of a folder or an address, or of a file with such a suffix; none
            if it holds nothing in this format.
        prefix: the prefix of addresses that are not paths, such as "hf:"; "" if there is none.
        fixed_names: the files of a folder that have fixed names, for error messages.

    Example:
        A format whose files hold one text per line, added from outside the package:

        >>> from setrnn.data.read import READERS
        >>> from setrnn.data.read.lines import numbered_lines
        >>> def read(path, options, bad_rows):
        ...     for number, line in numbered_lines(path, options.max_row_bytes):
        ...         yield Example(str(number), line.decode().strip())
        >>> READERS["lines"] = Format((".lines",), read)
        >>> _ = READERS.pop("lines")
    """

    suffixes: tuple[str, ...] = ()
    read: Callable[[Path, ReadOptions, BadRows], Iterator[Example]] | None = None
    finder: Callable[[Path, ReadOptions], dict[str, Split]] | None = None
    prefix: str = ""
    fixed_names: str = ""

    def fits(self, file: Path) -> bool:
        """Return whether a file has one of the suffixes."""
        return file.name.lower().endswith(self.suffixes)

    def find(self, place: Path, options: ReadOptions) -> dict[str, Split]:
        """Find the splits of a folder, or take a single file as the split "train"."""
        if self.read is None:
            return {} if self.finder is None else self.finder(place, options)
        is_file = place.is_file()
        files = {"train": place} if is_file else find_files(place, "", self.suffixes)
        return {
            split: Split((path,), partial(self.read, path, options))
            for split, path in files.items()
        }


def find_files(folder: Path, start: str, suffixes: tuple[str, ...]) -> dict[str, Path]:
    """Find one file per split: `start`, then train, valid or test, then one of the suffixes."""
    found: dict[str, Path] = {}
    for name, split in SPLIT_NAMES.items():
        for suffix in suffixes:
            path = folder / f"{start}{name}{suffix}"
            if path.is_dir():
                raise DataError(f"{path} is a folder, not a file. Rename or remove it.")
            if not path.is_file():
                continue
            if split in found:
                raise DataError(
                    f"{folder} holds the split '{split}' twice: {found[split].name} and "
                    f"{path.name}. Remove or rename one."
                )
            found[split] = path
    return found
