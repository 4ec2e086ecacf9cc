"""Write rows of any columns as CSV or Parquet, whole or not at all."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from setrnn.data.folders import whole_file
from setrnn.data.formats.label_cells import joining_separator

Row: TypeAlias = Mapping[str, Any]

_GROUP_ROWS = 4096
_LARGEST = 2**63
# A spreadsheet runs a cell that begins with one of these, or with what it takes for the same.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


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
        if mark and _suffix(path) == ".csv":
            stream.write(codecs.BOM_UTF8)
        WRITERS[_suffix(path)](_read_spool(spool), kinds, stream, separator)
    return n_rows


def is_table(path: str | Path) -> bool:
    """Return whether `write_table` writes files of this suffix."""
    return _suffix(Path(path)) in WRITERS


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


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _spool(rows: Iterable[Row], spool: BinaryIO) -> tuple[dict[str, set[str]], int]:
    """Write rows to a temporary file, and find the columns and the kinds of their values."""
    kinds: dict[str, set[str]] = {}
    n_rows = 0
    for row in rows:
        plain = {str(name): _plain(value) for name, value in row.items()}
        for name, value in plain.items():
            kinds.setdefault(name, set()).add(_kind(value))
        spool.write(json.dumps(plain, ensure_ascii=False).encode() + b"\n")
        n_rows += 1
    return {name: found - {""} for name, found in kinds.items()}, n_rows


def _read_spool(spool: BinaryIO) -> Iterator[dict[str, Any]]:
    spool.seek(0)
    yield from map(json.loads, spool)


def _plain(value: Any) -> Any:  # noqa: ANN401 (the user's values)
    """Return a value that JSON can write: dates and the like as text, NaN as nothing."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return str(value)


def _kind(value: Any) -> str:  # noqa: ANN401
    """Name the type of a value for a column; "" fits any column."""
    if value is None:
        return ""
    if isinstance(value, list):
        inner = {_kind(each) for each in value}
        if inner <= {"str"}:
            return "strings" if inner else "list"
        return "floats" if inner <= {"int", "float"} else "other"
    if isinstance(value, dict) or (isinstance(value, int) and abs(value) >= _LARGEST):
        return "other"
    return type(value).__name__


def _write_csv(
    rows: Iterable[Row], kinds: Mapping[str, set[str]], stream: BinaryIO, separator: str
) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text)  # with \r\n at the ends, so that a lone \r is quoted too
        writer.writerow(neutralise(name) for name in kinds)
        for row in rows:
            writer.writerow(neutralise(_cell(row.get(name), separator)) for name in kinds)
    finally:
        text.detach()


def _cell(value: Any, separator: str) -> str:  # noqa: ANN401
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and _kind(value) != "other":
        return joining_separator(separator).join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


def _write_parquet(
    rows: Iterable[Row], kinds: Mapping[str, set[str]], stream: BinaryIO, separator: str
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "str": pa.string(),
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "strings": pa.list_(pa.string()),
        "list": pa.list_(pa.string()),
        "floats": pa.list_(pa.float64()),
    }
    chosen = {name: _column_kind(found) for name, found in kinds.items()}
    schema = pa.schema({name: types.get(kind, pa.string()) for name, kind in chosen.items()})
    remaining = iter(rows)
    with pq.ParquetWriter(stream, schema) as writer:
        while group := list(islice(remaining, _GROUP_ROWS)):
            columns = {
                name: [_fit(row.get(name), kind) for row in group] for name, kind in chosen.items()
            }
            writer.write_table(pa.table(columns, schema=schema))


def _column_kind(found: set[str]) -> str:
    """Return the kind of a column; "other", which is written as text, if values differ."""
    if found == {"int", "float"}:
        return "float"
    if found & {"strings", "floats"}:
        found = found - {"list"}  # an empty list may be a list of anything
    return next(iter(found)) if len(found) == 1 else "str" if not found else "other"


def _fit(value: Any, kind: str) -> Any:  # noqa: ANN401
    if kind != "other" or value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


Writer: TypeAlias = Callable[[Iterable[Row], Mapping[str, set[str]], BinaryIO, str], None]
WRITERS: dict[str, Writer] = {".csv": _write_csv, ".parquet": _write_parquet}
