"""Read Parquet through pyarrow: labels and features as list columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.read.lines import RowProblem, file_errors, file_stem
from setrnn.data.read.reader import BadRows, Format, ReadOptions
from setrnn.data.read.row import check_columns, example_maker, read_rows
from setrnn.errors import DataError

_BATCH_ROWS = 1024


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one file, a record batch at a time."""
    make = example_maker(options, file_stem(path))
    rows = enumerate(_rows(path, options), start=1)
    with file_errors(path):
        yield from read_rows(rows, make, bad_rows, f"{path.name} row")


def _rows(path: Path, options: ReadOptions) -> Iterator[dict[str, Any] | RowProblem]:
    """Yield each row, or a problem if its strings cannot be decoded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            columns = _columns(path, options, file.schema_arrow)
            kept = None if options.keep_columns else columns
            for batch in file.iter_batches(_BATCH_ROWS, columns=kept):
                yield from _batch_rows(batch)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # from the system, not from the content
        raise DataError(f"{path} is not a valid Parquet file. Copy or write it again.") from error


def _batch_rows(batch: Any) -> Iterator[dict[str, Any] | RowProblem]:  # noqa: ANN401 - pyarrow has no types
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for index in range(batch.num_rows):
            try:
                yield from batch.slice(index, 1).to_pylist()
            except UnicodeDecodeError:
                yield RowProblem("is not UTF-8. Write its strings as UTF-8.")


def _columns(path: Path, options: ReadOptions, schema: Any) -> list[str]:  # noqa: ANN401
    """Return the columns to read; raise if one has a wrong type."""
    check_columns(path, options, schema.names)
    wanted = [options.id_field, *options.text_fields, *options.list_fields, options.complete_field]
    columns = [name for name in dict.fromkeys(wanted) if name in schema.names]
    for name in columns:
        kind = schema.field(name).type
        if name in options.list_fields and not _is_list_of_strings(kind):
            raise DataError(
                f"{path}: '{name}' must be a list of strings, but the column is {kind}."
            )
        if name in options.text_fields and not _is_string(kind):
            raise DataError(f"{path}: '{name}' must be a string, but the column is {kind}.")
    return columns


def _is_string(kind: Any) -> bool:  # noqa: ANN401
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind))


def _is_list_of_strings(kind: Any) -> bool:  # noqa: ANN401
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(types.is_null(kind) or (is_list and _is_string(kind.value_type)))


FORMAT = Format((".parquet",), read)
