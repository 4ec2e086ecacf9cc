"""Read Parquet through pyarrow: labels and features as list columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.read.lines import RowProblem, file_errors, file_stem, too_long
from setrnn.data.read.reader import BadRows, Format, ReadOptions
from setrnn.data.read.rows import check_columns, example_maker, read_rows
from setrnn.errors import DataError

_BATCH_ROWS, _BATCH_BYTES = 1024, 1 << 30
# Read pages of a column one after the other, not all its rows of a group at once.
_STREAMED = {"buffer_size": 1 << 20, "pre_buffer": False}
# A row group that grows so many times in memory, beyond so many bytes, is made to exhaust it.
_MAX_RATIO, _MIN_BOMB = 1_000, 1 << 28


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one file, a record batch at a time."""
    make = example_maker(options, file_stem(path))
    rows = enumerate(_rows(path, options), start=1)
    with file_errors(path):
        yield from read_rows(rows, make, bad_rows, f"{path.name} row")


def _rows(path: Path, options: ReadOptions) -> Iterator[dict[str, Any] | RowProblem]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as stream, pq.ParquetFile(stream, **_STREAMED) as file:
            names = file.schema_arrow.names
            check_columns(path, options, names)
            columns = [name for name in names if options.keep_columns or name in options.fields]
            n_before = 0
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                chunks = _list_chunks(group, columns)
                # Equal values take no room in the file, so that their number counts too.
                size = sum(max(each.total_uncompressed_size, each.num_values) for each in chunks)
                if problem := _find_problem(group.num_rows, chunks, size, n_before, options):
                    yield from [problem] * group.num_rows
                else:
                    # Several rows may share one long text, so each counts as long as the group.
                    n_rows = max(min(_BATCH_BYTES // max(size, 1), _BATCH_ROWS), 1)
                    # Threads only slow down batches of few rows.
                    for batch in file.iter_batches(n_rows, [number], columns, use_threads=False):
                        yield from batch.to_pylist()
                n_before += group.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # from the system, not from the content
        raise DataError(f"{path} is not a valid Parquet file. Copy or write it again.") from error


def _list_chunks(group: Any, columns: Collection[str]) -> list[Any]:  # noqa: ANN401 (pyarrow has no types)
    """Return the description of some columns of a row group."""
    paths = tuple(f"{name}." for name in columns)  # "labels.list.element" is a part of labels
    chunks = (group.column(index) for index in range(group.num_columns))
    return [each for each in chunks if f"{each.path_in_schema}.".startswith(paths)]


def _find_problem(
    n_rows: int, chunks: Sequence[Any], size: int, n_before: int, options: ReadOptions
) -> RowProblem | None:
    """Return why a row group is not read: which of its rows are too long is known afterwards."""
    unpacked = sum(each.total_uncompressed_size for each in chunks)
    packed = sum(each.total_compressed_size for each in chunks)
    is_bomb = unpacked > max(_MAX_RATIO * packed, _MIN_BOMB)
    if size <= options.max_row_bytes * n_rows and not is_bomb:
        return None
    if n_rows == 1:
        return too_long(options.max_row_bytes)
    return RowProblem(
        f"is one of {n_rows:,} rows ({n_before + 1:,} to {n_before + n_rows:,}) that take "
        f"{size:,} bytes together, and {packed:,} in the file: some are longer than "
        f"{options.max_row_bytes:,} bytes. Split these documents, or raise max_row_bytes."
    )


FORMAT = Format((".parquet",), read)
