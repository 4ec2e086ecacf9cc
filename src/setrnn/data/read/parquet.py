"""Read Parquet through pyarrow: labels and features as list columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.read.lines import RowProblem, file_errors, file_stem, too_long
from setrnn.data.read.reader import BadRows, Format, ReadOptions
from setrnn.data.read.row import check_columns, example_maker, read_rows
from setrnn.errors import DataError

_BATCH_ROWS, _BATCH_BYTES = 1024, 1 << 30


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
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            names = file.schema_arrow.names
            check_columns(path, options, names)
            columns = [name for name in names if options.keep_columns or name in options.fields]
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                size = _group_size(group, columns)
                if size > options.max_row_bytes * group.num_rows:  # the mean row is too long
                    yield from [too_long(options.max_row_bytes)] * group.num_rows
                    continue
                # Several rows may share one long text, so each counts as long as the group.
                n_rows = max(min(_BATCH_BYTES // max(size, 1), _BATCH_ROWS), 1)
                # Threads only slow down batches of few rows.
                for batch in file.iter_batches(n_rows, [number], columns, use_threads=False):
                    yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # from the system, not from the content
        raise DataError(f"{path} is not a valid Parquet file. Copy or write it again.") from error


def _group_size(group: Any, columns: Collection[str]) -> int:  # noqa: ANN401 (pyarrow has no types)
    """Return the size of some columns of a row group in memory, which a small file may exceed.

    Equal values take no room in the file, so that their number counts too.
    """
    paths = tuple(f"{name}." for name in columns)  # "labels.list.element" is a part of labels
    chunks = (group.column(index) for index in range(group.num_columns))
    own = [each for each in chunks if f"{each.path_in_schema}.".startswith(paths)]
    return sum(max(each.total_uncompressed_size, each.num_values) for each in own)


FORMAT = Format((".parquet",), read)
