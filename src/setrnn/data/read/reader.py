"""What the readers share: options, bad rows, splits, and how files are found and streamed."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, cast

from setrnn.data.example import Example, KnownLabels
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read.encodings import ReadLine, check_encoding, utf8_lines
from setrnn.errors import BadRowError, ConfigError, DataError

SPLIT_NAMES = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}

# A synthetic newsroom, which `tools/make_newsroom.py` of the repository writes.
EMBEDDED = "newsroom"
EMBEDDED_FOLDER = Path(__file__).parents[1] / EMBEDDED

OnBadRow = Literal["stop", "skip"]
ID_PREFIXES = ("auto", "file", "none")

_CHUNK = 1 << 20


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
        id_prefix: whether ids begin with the name of their file, if there are several files:
            "auto" if an earlier file has the same id, "file" always, "none" never.
        source_feature: whether documents have the name of their file as a feature.
        keep_columns: whether examples keep all columns of their rows.
        require_labels: whether a row without labels is a bad row.
        max_row_bytes: longer rows are bad rows.
        any_suffix: whether a single file is read whatever its suffix, because the user named
            the format.
        unknown_field: the field of labels that are not known; None for "unknown".
        complete_field: the field that says whether every label that is not given is absent; None
            for "complete".
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
    id_prefix: str = "auto"
    source_feature: bool = False
    keep_columns: bool = False
    require_labels: bool = True
    max_row_bytes: int = 10_000_000
    any_suffix: bool = False
    unknown_field: str | None = None
    complete_field: str | None = None
    present_field: str | None = None
    absent_field: str | None = None
    check_known: Callable[[KnownLabels], None] | None = None

    def __post_init__(self) -> None:
        """Raise if nothing can be read with these options."""
        if not all(self.text_fields):
            raise ConfigError(f"The text field is empty in '{self.text_field}'. Name a field.")
        if not self.label_separator:
            raise ConfigError("The label separator is empty. Give one, such as ';'.")
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.id_prefix not in ID_PREFIXES:
            raise ConfigError(
                f"The id prefix must be {', '.join(ID_PREFIXES[:-1])} or {ID_PREFIXES[-1]}, got "
                f"'{self.id_prefix}'."
            )
        if self.max_row_bytes < 1:
            raise ConfigError(f"max_row_bytes must be at least 1, got {self.max_row_bytes}.")

    @property
    def text_fields(self) -> tuple[str, ...]:
        """The fields that make up the text, in order."""
        return tuple(name.strip() for name in self.text_field.split(","))

    @property
    def known_fields(self) -> dict[str, str]:
        """The fields of known labels, each with the command-line option that names it."""
        named = {self.present_field: "--present-field", self.absent_field: "--absent-field"}
        return {name: flag for name, flag in named.items() if name is not None}

    @property
    def list_fields(self) -> tuple[str, ...]:
        """The fields that hold several strings, without repeats."""
        names = [self.labels_field, self.features_field, *self.known_fields]
        if self.require_labels:
            names.append(self.unknown_name)
        return tuple(dict.fromkeys(names))

    @property
    def unknown_name(self) -> str:
        """The field of labels that are not known."""
        return self.unknown_field or "unknown"

    @property
    def complete_name(self) -> str:
        """The field that is false if labels that are not given are not known."""
        return self.complete_field or "complete"


@dataclass
class BadRows:
    """Rows that cannot be read: the first one raises, or all are skipped and counted.

    Example:
        >>> bad_rows = BadRows("skip")
        >>> bad_rows.add(BadRowError("train.jsonl line 41", "is not JSON."))
        >>> bad_rows.n_skipped, bad_rows.first
        (1, ['train.jsonl line 41: is not JSON.'])
    """

    on_bad_row: OnBadRow = "stop"
    n_skipped: int = 0
    first: list[str] = field(default_factory=list)  # at most five messages
    notes: list[str] = field(default_factory=list)  # what else a user should know of the reading

    def add(self, error: BadRowError) -> None:
        """Raise the error, or count the row and keep the first five messages."""
        if self.on_bad_row == "stop":
            raise error
        self.n_skipped += 1
        if len(self.first) < 5:
            self.first.append(str(error))

    def note(self, text: str) -> None:
        """Keep a note for the user, once."""
        if text not in self.notes:
            self.notes.append(text)


@dataclass(frozen=True)
class Split:
    """One part of a dataset: its files, and a function that streams it, any number of times.

    Attributes:
        files: its files.
        read: streams its documents.
        pieces: of several files, each alone; () for one file.
    """

    files: tuple[Path, ...]
    read: Callable[[BadRows], Iterator[Example]]
    pieces: tuple[Split, ...] = ()


# Looks at a file or folder and returns the splits that it holds in one format: none if there is
# nothing in this format. A single file is the split "train".
Finder = Callable[[Path, ReadOptions], dict[str, Split]]

# Streams one file.
FileReader = Callable[[Path, ReadOptions, BadRows], Iterator[Example]]


@dataclass(frozen=True)
class Format:
    """A data format: how its splits are found, and how its data is recognised.

    Attributes:
        find: returns the splits of a file or folder.
        suffixes: the suffixes of its files.
        has_fields: whether rows have named fields; only such a format can hold known labels.
        prefix: the prefix of addresses that are not paths, such as "hf:"; "" if there is none.
        fixed_names: the files of a folder that have fixed names, for error messages.

    Example:
        A format whose files hold one text per line, added from outside the package:

        >>> from setrnn.data.read import READERS
        >>> def read(path, options, bad_rows):
        ...     for number, line in numbered_lines(path, options.max_row_bytes):
        ...         yield Example(str(number), line.decode().strip())
        >>> def find(place, options):
        ...     return file_splits(place, options, (".lines",), read)
        >>> READERS["lines"] = Format(find, suffixes=(".lines",))
        >>> _ = READERS.pop("lines")
    """

    find: Finder
    suffixes: tuple[str, ...] = ()
    has_fields: bool = False
    prefix: str = ""
    fixed_names: str = ""


def file_splits(
    place: Path, options: ReadOptions, suffixes: tuple[str, ...], read: FileReader
) -> dict[str, Split]:
    """Find one file per split by its suffix, and return a split for each."""
    files = find_files(place, ("",) if options.any_suffix and place.is_file() else suffixes)
    return {split: Split((path,), partial(read, path, options)) for split, path in files.items()}


def file_format(read: FileReader, suffixes: tuple[str, ...], fixed_names: str = "") -> Format:
    """Return a format of files that are found by their suffix and whose rows have named fields."""

    def find(place: Path, options: ReadOptions) -> dict[str, Split]:
        return file_splits(place, options, suffixes, read)

    return Format(find, suffixes, has_fields=True, fixed_names=fixed_names)


def find_files(place: Path, suffixes: tuple[str, ...]) -> dict[str, Path]:
    """Find one file per split by its suffix: `place` itself, or train/valid/test inside it."""
    if place.is_file():
        return {"train": place} if place.name.lower().endswith(suffixes) else {}
    found: dict[str, Path] = {}
    for stem, split in SPLIT_NAMES.items():
        for suffix in suffixes:
            path = place / f"{stem}{suffix}"
            if path.is_dir():
                raise DataError(f"{path} is a folder, not a file. Rename or remove it.")
            if not path.is_file():
                continue
            if split in found:
                raise DataError(
                    f"{place} holds the split '{split}' twice: {found[split].name} and "
                    f"{path.name}. Remove or rename one."
                )
            found[split] = path
    return found


def find_packed(path: Path) -> Path | None:
    """Find a file under its own name or with .gz added."""
    packed = path.with_name(f"{path.name}.gz")
    found = [candidate for candidate in (path, packed) if candidate.is_file()]
    if len(found) == 2:
        raise DataError(f"{path.parent} holds both {path.name} and {packed.name}. Remove one.")
    return found[0] if found else None


def file_stem(path: Path) -> str:
    """Return the name of a file without its suffix: `train` for train.jsonl.gz."""
    return Path(path.name.removesuffix(".gz")).stem


def refuse_empty(split: Split, name: str) -> Split:
    """Return a split that raises DataError if it yields no document; its pieces may be empty."""
    if split.files:
        n_more = len(split.files) - 1
        name = split.files[0].name + (f" (and {n_more} more)" if n_more else "")

    def read(bad_rows: BadRows) -> Iterator[Example]:
        n_before = bad_rows.n_skipped
        examples = split.read(bad_rows)
        first = next(examples, None)
        if first is None:
            n_skipped = bad_rows.n_skipped - n_before
            if n_skipped == 0:
                raise DataError(f"{name} holds no documents. Add at least one row.")
            shown = "".join(f" First: {each}" for each in bad_rows.first[n_before:][:1])
            raise DataError(
                f"{name} holds no documents that can be read: {n_skipped} rows skipped.{shown}"
            )
        yield first
        yield from examples

    return replace(split, read=read)


def numbered_lines(
    path: Path, max_bytes: int, encoding: str | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield each line of a plain or gzip file as UTF-8, with its number, from 1.

    A byte order mark is dropped; that of UTF-16 names the encoding of the file. Other lines that
    are not UTF-8 are decoded as `encoding`, or returned as they are. A line of more than
    `max_bytes` is truncated, but stays longer than `max_bytes`, so that the caller can recognise
    and skip it: memory is bounded.
    """
    with file_errors(path), _open(path) as stream:
        read_line = utf8_lines(stream, encoding)
        next_line = partial(read_line, max_bytes + 1)
        for number, line in enumerate(iter(next_line, b""), start=1):
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if len(line) > max_bytes:
                _skip_to_newline(read_line, line)


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn the errors of reading a file into a DataError of one line."""
    try:
        yield
    except EOFError as error:
        raise DataError(f"{path} is cut short: its gzip data ends early. Copy it again.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is not a valid gzip file. Copy it again, or remove .gz from its name if it "
            "is not compressed."
        ) from error
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist. Check the name.") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder, not a file. Name a file in it.") from error
    except PermissionError as error:
        raise DataError(f"{path} cannot be read: permission denied. Check it.") from error
    except UnicodeError as error:
        raise DataError(
            f"{path} cannot be decoded ({getattr(error, 'reason', error)}). Copy it again, or name "
            "its encoding with --encoding."
        ) from error
    except OSError as error:
        reason = " ".join(str(error.strerror or error).split())
        raise DataError(f"{path} cannot be read: {reason}. Check the disk.") from error


def _open(path: Path) -> io.BufferedReader:
    if not path.name.lower().endswith(".gz"):
        return path.open("rb")
    # GzipFile.readline is slow Python code; a buffer around it reads lines in C.
    return io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), _CHUNK)


def _skip_to_newline(read_line: ReadLine, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = read_line(_CHUNK)
