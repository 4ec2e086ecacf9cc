"""Write documents, or rows of any columns, to a file or a folder: completely or not at all."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from setrnn.data.disk import explain_failed_write, whole_file, whole_folder
from setrnn.data.example import Example
from setrnn.data.read.delimited import Dialect
from setrnn.data.read.excel import SUFFIX, write_sheet
from setrnn.data.read.label_studio import make_tasks, write_tasks
from setrnn.data.read.reader import COLUMNS_FILE
from setrnn.data.streaming import batched
from setrnn.errors import ConfigError, DataError, shown

Row: TypeAlias = Mapping[str, Any]

_GROUP_ROWS = 2048  # of Parquet
# A spreadsheet runs a cell that begins with one of these, or with what it takes for the same.
_SIGNS = "=+\\-@＝＋－＠"  # noqa: RUF001
_FORMULA = re.compile(rf"[{_SIGNS}\t\r\n]")
# One that separates cells by semicolons or tabs finds such a cell inside another.
_INNER_FORMULA = re.compile(rf'([;\t\r\n]"*)([{_SIGNS}][^;\t\r\n]*)')


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
    try:
        with explain_failed_write(path, " Choose another path."), whole_file(path) as stream:
            return WRITERS[suffix](examples, stream)
    except UnicodeEncodeError as error:
        raise DataError(
            f"{path} cannot be written: a document holds half a character (a lone surrogate), "
            f"which UTF-8 cannot write, in {shown(error.object)}. Remove it."
        ) from error


def write_folder(
    splits: Mapping[str, Iterable[Example]],
    folder: str | Path,
    suffix: str = ".jsonl",
    columns: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Stream splits into a new folder, one file per split; return the number of documents of each.

    The columns are those of the data that they were read from: `Source.columns` finds them there.

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
        if columns:
            (temporary / COLUMNS_FILE).write_text(json.dumps(columns), encoding="utf-8")
        return {
            name: write_examples(examples, temporary / f"{name}{suffix}")
            for name, examples in splits.items()
        }


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
    import pyarrow as pa

    names = pa.list_(pa.string())
    types = {"id": pa.string(), "text": pa.string(), "labels": names, "features": names}
    types |= {"unknown": names, "complete": pa.bool_()}
    rows = ({name: getattr(each, name) for name in types} for each in examples)
    return _write_parquet(rows, types, stream)


WRITERS: dict[str, Callable[[Iterable[Example], BinaryIO], int]] = {
    ".jsonl": _write_jsonl,
    ".jsonl.gz": _write_jsonl_gz,
    ".parquet": _write_example_rows,
    ".json": lambda examples, stream: write_tasks(make_tasks(examples), stream),
}


def write_table(
    rows: Iterable[Row],
    path: str | Path,
    dialect: Dialect = Dialect(),  # noqa: B008 - frozen
) -> int:
    """Write rows as CSV, Excel or Parquet by the suffix of the file; return their number.

    Rows may have different columns. In CSV, lists of strings or numbers are joined by the
    separator, other values that are not plain are JSON, and what a spreadsheet would run as a
    formula begins with an apostrophe. Excel gets numbers and the same texts, none of which is a
    formula. Parquet keeps lists and numbers.

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
        names: dict[str, None] = {}
        n_rows = 0
        for row in rows:
            n_rows += 1
            names |= dict.fromkeys(row)
            # Dates and the like become text.
            spool.write(json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n")
        if path.suffix.lower() == ".parquet":
            types = _find_types(_read_spool(spool), names)
            return _write_parquet(_read_spool(spool), types, stream)
        if path.suffix.lower() == SUFFIX:
            table = (
                [_plain(row.get(name), dialect.separator) for name in names]
                for row in _read_spool(spool)
            )
            write_sheet(table, list(names), stream)
            return n_rows
        stream.write(codecs.BOM_UTF8 if dialect.mark else b"")
        _write_csv(_read_spool(spool), names, stream, dialect)
    return n_rows


def is_table(path: str | Path) -> bool:
    """Return whether `write_table` writes files of this suffix."""
    return Path(path).suffix.lower() in (".csv", SUFFIX, ".parquet")


def neutralise(cell: str) -> str:
    """Put an apostrophe before what a spreadsheet would run as a formula.

    That is a cell, or a part of one after a semicolon, a tab or a new line. Numbers are left as
    they are.

    Example:
        >>> neutralise("=HYPERLINK(A1)"), neutralise("-5.2"), neutralise("a=b")
        ("'=HYPERLINK(A1)", '-5.2', 'a=b')
        >>> neutralise("text;=1+1")
        "text;'=1+1"
    """
    cell = _INNER_FORMULA.sub(lambda found: found[1] + _neutralise_start(found[2]), cell)
    return _neutralise_start(cell) if _FORMULA.match(cell) else cell


def _neutralise_start(text: str) -> str:
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text if text.isascii() and text == text.strip() else f"'{text}"


def _read_spool(spool: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the rows again, without NaN and infinite numbers."""
    spool.seek(0)
    return (json.loads(line, parse_constant=lambda _: None) for line in spool)


def _write_csv(
    rows: Iterable[Row], names: Iterable[str], stream: BinaryIO, dialect: Dialect
) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    try:
        # With \r\n at the ends, so that a lone \r is quoted too.
        writer = csv.writer(text, delimiter=dialect.delimiter)
        writer.writerow(map(neutralise, names))
        for row in rows:
            cells = (_cell(row.get(name), dialect.separator) for name in names)
            writer.writerow(map(neutralise, cells))
    finally:
        text.detach()


def _plain(value: Any, separator: str) -> Any:  # noqa: ANN401
    is_small = isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**15)
    return value if is_small else _cell(value, separator) or None


def _cell(value: Any, separator: str) -> str:  # noqa: ANN401
    if isinstance(value, list) and all(type(each) in (str, int, float) for each in value):
        return separator.join(map(str, value))
    return _text(value) or ""


def _text(value: Any) -> str | None:  # noqa: ANN401
    """Return any value as text; nothing stays nothing."""
    is_text = value is None or isinstance(value, str)
    return value if is_text else json.dumps(value, ensure_ascii=False)


def _find_types(rows: Iterable[Row], names: Iterable[str]) -> dict[str, Any]:
    """Find the pyarrow type of each column; values of different types are written as text."""
    import pyarrow as pa

    text, none = pa.string(), pa.null()
    found = dict.fromkeys(names, none)
    for group in batched(rows, _GROUP_ROWS):
        for name, known in found.items():
            try:
                new = pa.array([row.get(name) for row in group]).type
                both = [pa.schema([(name, each)]) for each in (known, new)]
                found[name] = pa.unify_schemas(both, promote_options="permissive").types[0]
            except (pa.ArrowException, OverflowError):
                found[name] = text
    plain = {pa.bool_(), pa.int64(), pa.float64()}
    types = {none: text, pa.list_(none): pa.list_(text), pa.list_(text): pa.list_(text)}
    types |= {each: each for each in plain} | {pa.list_(each): pa.list_(each) for each in plain}
    return {name: types.get(each, text) for name, each in found.items()}


def _write_parquet(rows: Iterable[Row], types: Mapping[str, Any], stream: BinaryIO) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, n_written = pa.schema(types), 0
    with pq.ParquetWriter(stream, schema) as writer:
        for group in batched(rows, _GROUP_ROWS):
            columns = {name: [row.get(name) for row in group] for name in types}
            for name, kind in types.items():
                if kind == pa.string():
                    columns[name] = list(map(_text, columns[name]))
            writer.write_table(pa.table(columns, schema))
            n_written += len(group)
    return n_written
