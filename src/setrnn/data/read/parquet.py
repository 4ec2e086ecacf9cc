"""Read Parquet through pyarrow: labels and features as list columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.read.lines import file_errors, file_stem
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


def _rows(path: Path, options: ReadOptions) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            names = file.schema_arrow.names
            check_columns(path, options, names)
            columns = [name for name in names if options.keep_columns or name in options.fields]
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # from the system, not from the content
        raise DataError(f"{path} is not a valid Parquet file. Copy or write it again.") from error


FORMAT = Format((".parquet",), read)
