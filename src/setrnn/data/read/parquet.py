"""Read Parquet through pyarrow: labels and features as list columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.read.printing import printable
from setrnn.data.read.reader import BadRows, ReadOptions, file_errors, file_format, file_stem
from setrnn.data.read.row import RowProblem, check_columns, example_maker, read_rows
from setrnn.errors import DataError

_BATCH_ROWS = 1024


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one file, a record batch at a time."""
    make = example_maker(options, file_stem(path))
    rows = enumerate(_rows(path, options), start=1)
    with file_errors(path):
        yield from read_rows(rows, make, bad_rows, f"{printable(path.name)} row")


def _rows(path: Path, options: ReadOptions) -> Iterator[dict[str, Any] | RowProblem]:
    """Yield each row, or a problem if its strings cannot be decoded."""
    import pyarrow.parquet as pq

    with path.open("rb") as stream, _valid_file(path), pq.ParquetFile(stream) as file:
        columns = _columns(path, options, file.schema_arrow)
        kept = None if options.keep_columns else columns
        for batch in file.iter_batches(_BATCH_ROWS, columns=kept):
            yield from _batch_rows(batch)


@contextmanager
def _valid_file(path: Path) -> Iterator[None]:
    """Turn the errors of a damaged file into a DataError."""
    import pyarrow as pa

    try:
        yield
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
    ids, lists = [options.id_field], options.list_fields
    columns = []
    complete = [options.complete_name] if options.require_labels else []
    for name in dict.fromkeys([*ids, *options.text_fields, *lists, *complete]):
        if name not in schema.names:
            continue
        if schema.names.count(name) > 1:
            raise DataError(f"{path} has two columns '{name}'. Rename or remove one.")
        kind = schema.field(name).type
        if name in lists and not _is_list_of_strings(kind):
            raise DataError(
                f"{path}: '{name}' must be a list of strings, but the column is {kind}."
            )
        if name in options.text_fields and not _is_string(kind):
            raise DataError(f"{path}: '{name}' must be a string, but the column is {kind}.")
        columns.append(name)
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


FORMAT = file_format(read, (".parquet",))
