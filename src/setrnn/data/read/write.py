"""Write documents, or rows of any columns, to a file or a folder: completely or not at all."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from setrnn.data.disk import explain_failed_write, whole_file, whole_folder
from setrnn.data.example import Example
from setrnn.data.read.delimited import joining_separator
from setrnn.data.read.label_studio import make_tasks, write_tasks
from setrnn.data.streaming import batched
from setrnn.errors import ConfigError, DataError, shown

Row: TypeAlias = Mapping[str, Any]
Kinds: TypeAlias = dict[str, str]  # of the values of each column

_GROUP_ROWS = 2048  # of Parquet
# A spreadsheet runs a cell that begins with one of these, or with what it takes for the same.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
_EXAMPLE_KINDS: Kinds = {
    "id": "str",
    "text": "str",
    "labels": "strings",
    "features": "strings",
    "unknown": "strings",
    "complete": "bool",
}


def write_examples(examples: Iterable[Example], path: str | Path) -> int:
    r"""Stream documents into a file in the format of its suffix; return their number.

    The file appears under its name when it is complete; after a failure nothing is left behind,
    and an older file is unchanged. The same documents give the same bytes.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "news.jsonl"
        >>> write_examples([Example("1", "Rates rise", ("economy",))], file)
        1
        >>> file.read_text()
        '{"id": "1", "text": "Rates rise", "labels": ["economy"]}\n'
    """
    path = Path(path)
    suffix = next((each for each in WRITERS if path.name.lower().endswith(each)), None)
    if suffix is None:
        known = ", ".join(WRITERS)
        raise DataError(f"{path} has no known suffix. End its name in one of: {known}.")
    with explain_failed_write(path, " Choose another path."), whole_file(path) as stream:
        return WRITERS[suffix](_check_characters(examples), stream)


def write_folder(
    splits: Mapping[str, Iterable[Example]], folder: str | Path, suffix: str = ".jsonl"
) -> dict[str, int]:
    """Stream splits into a new folder, one file per split; return the number of documents of each.

    Example:
        >>> import tempfile
        >>> splits = {"train": [Example("1", "a", ("x",))], "test": [Example("2", "b")]}
        >>> write_folder(splits, Path(tempfile.mkdtemp()) / "data")
        {'train': 1, 'test': 1}
    """
    folder = Path(folder)
    if suffix not in WRITERS:
        raise ConfigError(f"The suffix must be one of {', '.join(WRITERS)}, got '{suffix}'.")
    if folder.exists():
        raise DataError(f"{folder} exists already. Remove it, or name another folder.")
    with whole_folder(folder) as temporary:
        return {
            name: write_examples(examples, temporary / f"{name}{suffix}")
            for name, examples in splits.items()
        }


def _check_characters(examples: Iterable[Example]) -> Iterator[Example]:
    """Raise DataError if a document cannot be written as UTF-8."""
    for example in examples:
        strings = (*example.labels, *example.features, *example.unknown)
        try:
            "".join((example.id, example.text, *strings)).encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"Document {shown(example.id)} holds half a character (a lone surrogate), which "
                "UTF-8 cannot write. Remove it."
            ) from error
        yield example


def _write_jsonl(examples: Iterable[Example], stream: BinaryIO) -> int:
    n_written = 0
    for example in examples:
        row = {name: getattr(example, name) for name in ("id", "text", "labels")}
        if example.features:
            row["features"] = example.features
        if example.unknown:
            row["unknown"] = example.unknown
        if not example.complete:
            row["complete"] = False
        stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        n_written += 1
    return n_written


def _write_jsonl_gz(examples: Iterable[Example], stream: BinaryIO) -> int:
    # Without a name and a time in the header, the same documents give the same bytes.
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as packed:
        return _write_jsonl(examples, packed)  # type: ignore[arg-type]


def _write_example_rows(examples: Iterable[Example], stream: BinaryIO) -> int:
    rows = ({name: getattr(each, name) for name in _EXAMPLE_KINDS} for each in examples)
    return _write_parquet(rows, _EXAMPLE_KINDS, stream)


WRITERS: dict[str, Callable[[Iterable[Example], BinaryIO], int]] = {
    ".jsonl": _write_jsonl,
    ".jsonl.gz": _write_jsonl_gz,
    ".parquet": _write_example_rows,
    ".json": lambda examples, stream: write_tasks(make_tasks(examples), stream),
}


def write_table(
    rows: Iterable[Row], path: str | Path, separator: str = ";", *, mark: bool = False
) -> int:
    """Write rows as CSV or Parquet by the suffix of the file; return their number.

    Rows may have different columns. In CSV, lists of strings or numbers are joined by the
    separator, other values that are not plain are JSON, and cells that a spreadsheet would run as
    formulas begin with an apostrophe; with `mark`, the file begins with a byte order mark, which
    spreadsheets look for. Parquet keeps lists and numbers.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "found.csv"
        >>> write_table([{"text": "=1+1", "labels": ["a", "b"], "probability": 0.5}], file)
        1
        >>> print(file.read_text())
        text,labels,probability
        '=1+1,a;b,0.5
        <BLANKLINE>
    """
    path = Path(path)
    with whole_file(path, " Choose another path.") as stream, tempfile.TemporaryFile() as spool:
        kinds, n_rows = _spool(rows, spool)
        if mark and path.suffix.lower() == ".csv":
            stream.write(codecs.BOM_UTF8)
        spool.seek(0)
        spooled = map(json.loads, spool)
        if path.suffix.lower() == ".parquet":
            _write_parquet(spooled, kinds, stream)
        else:
            _write_csv(spooled, kinds, stream, joining_separator(separator))
    return n_rows


def is_table(path: str | Path) -> bool:
    """Return whether `write_table` writes files of this suffix."""
    return Path(path).suffix.lower() in (".csv", ".parquet")


def neutralise(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run as a formula.

    Numbers are left as they are.

    Example:
        >>> neutralise("=HYPERLINK(A1)"), neutralise("-5.2"), neutralise("a=b")
        ("'=HYPERLINK(A1)", '-5.2', 'a=b')
    """
    if not cell.startswith(_FORMULA_STARTS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell if cell.isascii() and cell == cell.strip() else f"'{cell}"


def _spool(rows: Iterable[Row], spool: BinaryIO) -> tuple[Kinds, int]:
    """Write rows to a temporary file, and find the columns and the kinds of their values."""
    kinds: dict[str, set[str]] = {}
    n_rows = 0
    for row in rows:
        n_rows += 1
        plain = _plain(row)
        for name, value in plain.items():
            kinds.setdefault(name, set()).add(_kind(value))
        spool.write(json.dumps(plain, ensure_ascii=False).encode() + b"\n")
    return {name: _column_kind(found - {""}) for name, found in kinds.items()}, n_rows


def _plain(value: Any) -> Any:  # noqa: ANN401 (the user's values)
    """Return a value that JSON can write: dates and the like as text, NaN as nothing."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | bool | int) else str(value)


def _kind(value: Any) -> str:  # noqa: ANN401
    """Name the type of a value for a column; "" fits any column."""
    if value is None:
        return ""
    if isinstance(value, list):
        inner = {_kind(each) for each in value}
        if not inner:
            return "list"
        return "strings" if inner == {"str"} else "floats" if inner <= {"int", "float"} else "other"
    is_large = isinstance(value, int) and abs(value) >= 2**63
    return "other" if is_large or isinstance(value, dict) else type(value).__name__


def _column_kind(found: set[str]) -> str:
    """Return the kind of a column; "other", which is written as text, if values differ."""
    if found == {"int", "float"}:
        return "float"
    if found & {"strings", "floats"}:
        found = found - {"list"}  # an empty list may be a list of anything
    return next(iter(found)) if len(found) == 1 else "str" if not found else "other"


def _write_csv(rows: Iterable[Row], kinds: Kinds, stream: BinaryIO, separator: str) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text)  # with \r\n at the ends, so that a lone \r is quoted too
        writer.writerow(neutralise(name) for name in kinds)
        for row in rows:
            writer.writerow(neutralise(_cell(row.get(name), separator)) for name in kinds)
    finally:
        text.detach()


def _cell(value: Any, separator: str) -> str:  # noqa: ANN401
    if isinstance(value, list) and _kind(value) != "other":
        return separator.join(map(str, value))
    return _text(value) or ""


def _text(value: Any) -> str | None:  # noqa: ANN401
    """Return any value as text; nothing stays nothing."""
    is_text = value is None or isinstance(value, str)
    return value if is_text else json.dumps(value, ensure_ascii=False)


def _write_parquet(rows: Iterable[Row], kinds: Kinds, stream: BinaryIO) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "strings": pa.list_(pa.string()),
        "list": pa.list_(pa.string()),
        "floats": pa.list_(pa.float64()),
    }
    schema = pa.schema({name: types.get(kind, pa.string()) for name, kind in kinds.items()})
    mixed = [name for name, kind in kinds.items() if kind == "other"]
    n_written = 0
    with pq.ParquetWriter(stream, schema) as writer:
        for group in batched(rows, _GROUP_ROWS):
            columns = {name: [row.get(name) for row in group] for name in kinds}
            columns |= {name: list(map(_text, columns[name])) for name in mixed}
            writer.write_table(pa.table(columns, schema))
            n_written += len(group)
    return n_written
