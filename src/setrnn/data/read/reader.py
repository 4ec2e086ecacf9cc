"""What all readers share: options, bad rows, formats, and how a row becomes an Example."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from setrnn.data.example import Example, KnownLabels, rename_labels
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read.lines import RowProblem, Unlabelled, check_characters, check_length
from setrnn.errors import (
    MOST_NAMES,
    BadRowError,
    ConfigError,
    DataError,
    list_some,
    printable,
    shown,
)
from setrnn.progress import log

Row = TypeVar("Row")

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

# What such columns are often called.
USUAL_NAMES = {
    "text": ("text", "description", "body", "content", "abstract", "summary", "title", "message"),
    "labels": (
        *("labels", "label", "tags", "genres", "genre", "categories", "category", "topics"),
        *("topic", "keywords", "subjects", "classes", "listed_in"),
    ),
    "id": ("id", "key", "identifier", "uid", "number"),
    "features": ("features", "feature"),
}

# What a cell may say; an empty one says nothing.
_TRUTHS = {"": True, "true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


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


def read_rows(
    rows: Iterable[tuple[int, Row | RowProblem]],
    make: Callable[[Row, int], Example | None],
    bad_rows: BadRows,
    place: str,
) -> Iterator[Example]:
    """Turn numbered rows into Examples; `place` says what the numbers count: "train.jsonl line".

    `make` raises RowProblem if a row is bad, and returns None to leave it out. A row that cannot
    even be read is a RowProblem itself.
    """
    for number, row in rows:
        try:
            if isinstance(row, RowProblem):
                raise row
            example = make(row, number)
        except Unlabelled:
            bad_rows.first_unlabelled = bad_rows.first_unlabelled or f"{place} {number}"
            bad_rows.n_unlabelled += 1
            continue
        except RowProblem as problem:
            bad_rows.add(f"{place} {number}", problem)
            continue
        if example is not None:
            yield example


def example_maker(options: ReadOptions, stem: str) -> Callable[[Mapping[str, Any], int], Example]:
    """Return a function that turns a row and its number into an Example, and checks its values.

    A row without an id is named after its file and number: `train-41`.
    """
    text_fields, labels_field = options.text_fields, options.labels_field
    id_field, features_field = options.id_field, options.features_field
    is_joined, has_known = len(text_fields) > 1, bool(options.known_fields)

    def make(row: Mapping[str, Any], number: int) -> Example:
        row_id = row.get(id_field)
        texts = [_text(row, name, is_joined) for name in text_fields]
        check_length(sum(map(len, texts)), options.max_row_bytes)
        unknown: tuple[str, ...] = ()
        is_complete = True
        if not options.require_labels:
            labels = _strings_or_none(row, labels_field)
        elif labels_field in row:
            labels = _strings_or_none(row, labels_field)
            unknown = _strings_or_none(row, UNKNOWN)
            is_complete = _is_complete(row.get(COMPLETE))
            is_said = row[labels_field] is not None or unknown or not is_complete
            if not is_said and options.unlabelled_rows != "empty":
                raise Unlabelled("has no labels.")
        else:
            raise _missing(row, labels_field, "Add it ([] for none)", "--labels-field")
        features = _strings_or_none(row, features_field)
        try:
            example = Example(
                f"{stem}-{number}" if row_id is None else id_text(id_field, row_id),
                "\n".join(filter(None, texts)),
                labels,
                features,
                _known_labels(row, options) if has_known else None,
                row if options.keep_columns else None,
                unknown,
                is_complete,
            )
        except DataError as error:
            raise RowProblem(str(error)) from error
        check_characters((example.id, example.text, *labels, *features, *unknown))
        return example

    return make


def check_columns(path: Path, options: ReadOptions, columns: list[str]) -> None:
    """Raise if a table lacks a required column, or has a column twice that is read.

    The columns of ids and features are optional, unless the user named them.
    """
    wanted = [(name, "--text-field") for name in options.text_fields]
    for kind in ("labels", "id", "features", "present", "absent"):
        name = getattr(options, f"{kind}_field")
        is_named = name != getattr(ReadOptions, f"{kind}_field")
        if is_named or (kind == "labels" and options.require_labels):
            wanted.append((name, f"--{kind}-field"))
    for name, flag in wanted:
        if name not in columns:
            raise DataError(
                f"{path} has no column '{name}': it has {suggest_names(name, columns)} Name the "
                f"right one with {flag}."
            )
    for name in options.fields:
        if columns.count(name) > 1:
            raise DataError(f"{path} has two columns '{printable(name)}'. Rename or remove one.")


def suggest_names(name: str, columns: Iterable[str]) -> str:
    """List columns, and suggest one that is spelled like a name, or usually holds the same.

    Example:
        >>> suggest_names("text", ["show_id", "listed_in", "description"])
        "show_id, listed_in, description. Did you mean 'description'?"
    """
    columns = list(columns)
    plain = {column.strip().casefold(): column for column in columns}
    near = difflib.get_close_matches(name.casefold(), plain, n=1)
    near += [each for each in plain if name.casefold() in each]
    near += [each for each in USUAL_NAMES.get(name, ()) if each in plain]
    advice = f" Did you mean '{plain[near[0]]}'?" if near else ""
    return printable(f"{list_some(columns, MOST_NAMES) or 'none'}.{advice}")


def id_text(name: str, value: object) -> str:
    """Return an id, a string or a whole number, as text."""
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    raise RowProblem(
        f"'{name}' must be a string or a whole number, got {shown(value)}. Write a string."
    )


def strings(name: str, values: Any) -> tuple[str, ...]:  # noqa: ANN401 - it comes from the user
    """Return a list of strings as a tuple; raise RowProblem if it is anything else."""
    if type(values) is not list:
        advice = 'Write ["..."], or [] for none.'
        if isinstance(values, str) and values:
            advice = f"Write [{shown(values)}]."
        raise RowProblem(f"'{name}' must be a list of strings, got {shown(values)}. {advice}")
    for value in values:
        if type(value) is not str:
            advice = "Remove it." if value is None else "Write each as a string in quotes."
            raise RowProblem(
                f"'{name}' must be a list of strings, got {shown(value)} in it. {advice}"
            )
        if not value:
            raise RowProblem(f"'{name}' holds an empty string. Remove it; [] means none.")
    return tuple(values)


def _strings_or_none(row: Mapping[str, Any], name: str | None) -> tuple[str, ...]:
    """Return the strings of a field that may be null or missing."""
    values = None if name is None else row.get(name)
    return () if values is None else strings(str(name), values)


def _text(row: Mapping[str, Any], name: str, may_be_null: bool) -> str:
    """Return a text, or one of several: of these, each may be null."""
    text = row.get(name)
    if type(text) is str:
        return text
    if name not in row:
        raise _missing(row, name, "Add it", "--text-field")
    if text is None and may_be_null:
        return ""
    advice = 'Write "" for an empty text.' if text is None else "Write it in quotes."
    raise RowProblem(f"'{name}' must be a string, got {shown(text)}. {advice}")


def _known_labels(row: Mapping[str, Any], options: ReadOptions) -> KnownLabels:
    """Return the known labels of a row; a field that is missing holds none."""
    present, absent = (
        rename_labels(_strings_or_none(row, name), options.label_map)
        for name in (options.present_field, options.absent_field)
    )
    known = KnownLabels(present, absent)
    if options.check_known is not None:
        options.check_known(known)
    return known


def _is_complete(value: object) -> bool:
    """Return whether a value says that a document is complete; a missing one does."""
    if value is None or type(value) is bool:
        return value is not False
    found = _TRUTHS.get(value.strip().lower()) if type(value) is str else None
    if found is None:
        raise RowProblem(
            f"'{COMPLETE}' must be true or false, got {shown(value)}. Write one of these."
        )
    return found


def _missing(row: Mapping[str, Any], name: str, advice: str, flag: str) -> RowProblem:
    return RowProblem(
        f"'{name}' is missing, the row has {suggest_names(name, row)} {advice}, or name another "
        f"field with {flag}."
    )
