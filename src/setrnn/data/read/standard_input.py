"""Read documents from standard input: JSON Lines, a table, or one text per line."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from setrnn.data.example import Example
from setrnn.data.read import open_dataset
from setrnn.data.read.delimited import N_LINES, find_header
from setrnn.data.read.printing import printable
from setrnn.data.read.reader import (
    BadRows,
    ReadOptions,
    Split,
    file_stem,
    numbered_lines,
    refuse_empty,
)
from setrnn.data.read.row import decode, read_rows

STDIN = "-"


@contextmanager
def open_standard_input(
    stream: BinaryIO, options: ReadOptions, reader: str | None = None
) -> Iterator[Split]:
    """Yield the documents of a stream, which is copied to a temporary file first.

    Without a format, lines that begin with { are JSON objects, a first line that names the text
    column begins a table, and otherwise each line is a text.
    """
    with tempfile.TemporaryDirectory(prefix="setrnn-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
        reader = reader or _find_reader(path, options)
        if reader is None:
            yield refuse_empty(Split((path,), partial(_read_lines, path, options)), "stdin")
        else:
            yield open_dataset(path, options, reader).require("train")


def _find_reader(path: Path, options: ReadOptions) -> str | None:
    """Return the format of a file; None if its lines are texts."""
    lines = islice(numbered_lines(path, options.max_row_bytes, options.encoding), N_LINES)
    first = [line.decode(errors="replace") for _, line in lines]
    if "".join(first).lstrip().startswith("{"):
        return "jsonl"
    return "csv" if {*options.text_fields} <= {*find_header(first, options.text_fields)} else None


def _read_lines(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream a file of one text per line, without empty lines."""

    def make(line: bytes, number: int) -> Example | None:
        text = decode(line).strip()
        return Example(f"{file_stem(path)}-{number}", text) if text else None

    lines = numbered_lines(path, options.max_row_bytes, options.encoding)
    return read_rows(lines, make, bad_rows, f"{printable(path.name)} line")
