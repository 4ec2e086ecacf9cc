"""Cut files into ranges of rows, and read one range without the others.

Lines of JSON and rows of Parquet are found where they are, also in a stream from a store of
objects. Files in other formats are read from their beginning.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from setrnn.data.example import Example
from setrnn.data.formats import jsonl, open_dataset, parquet
from setrnn.data.formats.encodings import MARKS
from setrnn.data.formats.reader import BadRows, ReadOptions, Split
from setrnn.errors import BadRowError, DataError

_CHUNK = 1 << 20
_PARQUET = ".parquet"
_STREAMED = (".jsonl", ".ndjson", _PARQUET)


@dataclass(frozen=True)
class Range:
    """Rows of a file that are next to each other."""

    first: int  # the number of the first row, from 0
    n_rows: int
    # Of lines of JSON only: their bytes, and the hash of these.
    start: int = 0
    stop: int = 0
    hash: str = ""
    is_last: bool = False  # of a file that is not cut into lines


def is_streamed(name: str, stream: BinaryIO) -> bool:
    """Return whether the ranges of a file are read where they are, given its name and content."""
    start = stream.read(4)
    stream.seek(0)
    return name.lower().endswith(_STREAMED) and not start.startswith(tuple(MARKS))


def cut_stream(name: str, stream: BinaryIO, n_rows: int) -> list[Range]:
    """Cut a file whose ranges are read where they are into ranges of `n_rows` rows."""
    if name.lower().endswith(_PARQUET):
        return list(_equal_ranges(parquet.count_rows(Path(name), stream), n_rows))
    return list(_cut_lines(stream, n_rows))


def cut_file(path: Path, options: ReadOptions, reader: str | None, n_rows: int) -> list[Range]:
    """Cut a file in any other format: its documents are counted by reading it."""
    documents = _open_file(path, options, reader).read(BadRows("skip"))
    return list(_equal_ranges(sum(1 for _ in documents), n_rows))


def read_stream(
    name: str, stream: BinaryIO, rows: Range, options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream the documents of a range that `cut_stream` has cut."""
    path = Path(name)
    if name.lower().endswith(_PARQUET):
        yield from parquet.read_range(path, stream, rows.first, rows.n_rows, options, bad_rows)
        return
    stream.seek(rows.start)
    bounded = _Bounded(stream, rows.stop - rows.start)
    lines: Any = io.BufferedReader(bounded, _CHUNK)
    yield from jsonl.read_stream(path, lines, rows.first + 1, options, bad_rows)
    if bounded.hashed.hexdigest() != rows.hash:
        raise has_changed(name)


def read_file(
    path: Path, rows: Range, options: ReadOptions, reader: str | None, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream the documents of a range that `cut_file` has cut."""
    switch = _Switch("skip")
    documents = _open_file(path, options, reader).read(switch)
    for _ in islice(documents, rows.first):
        pass
    switch.target = bad_rows  # rows before the range are those of other ranges
    yield from islice(documents, rows.n_rows)
    if rows.is_last:  # bad rows may follow
        yield from documents


def has_changed(name: str) -> DataError:
    """Return the error for a file that is not what it was when it was cut."""
    return DataError(
        f"{name} has changed since the plan was made. Restore it, or choose another folder."
    )


def _open_file(path: Path, options: ReadOptions, reader: str | None) -> Split:
    (split,) = open_dataset(path, options, reader).splits.values()
    return split


def _equal_ranges(n_total: int, n_rows: int) -> Iterator[Range]:
    for first in range(0, n_total, n_rows):
        n_left = n_total - first
        yield Range(first, min(n_rows, n_left), is_last=n_left <= n_rows)


def _cut_lines(stream: BinaryIO, n_rows: int) -> Iterator[Range]:
    """Yield ranges of lines; the last line may have no end."""
    first, n_lines, start, place = 0, 0, 0, 0
    hashed, is_open = _hash(b""), False  # whether the last line so far has no end
    while chunk := stream.read(_CHUNK):
        ends = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == ord("\n")) + 1
        done = 0
        while n_lines + len(ends) >= n_rows:
            n_more = n_rows - n_lines
            stop = int(ends[n_more - 1])
            hashed.update(chunk[done:stop])
            yield Range(first, n_rows, start, place + stop, hashed.hexdigest())
            ends, done = ends[n_more:], stop
            first, n_lines, start, hashed = first + n_rows, 0, place + stop, _hash(b"")
        hashed.update(chunk[done:])
        n_lines += len(ends)
        place += len(chunk)
        is_open = not chunk.endswith(b"\n")
    if n_lines or is_open:
        yield Range(first, n_lines + is_open, start, place, hashed.hexdigest())


def _hash(content: bytes) -> hashlib.blake2b:
    return hashlib.blake2b(content, digest_size=16)


class _Bounded(io.RawIOBase):
    """The next bytes of a stream, hashed as they are read."""

    def __init__(self, stream: BinaryIO, n_bytes: int) -> None:
        self._stream, self._n_left, self.hashed = stream, n_bytes, _hash(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = self._stream.read(min(len(buffer), self._n_left))
        buffer[: len(content)] = content
        self.hashed.update(content)
        self._n_left -= len(content)
        return len(content)


class _Switch(BadRows):
    """Bad rows that are forgotten, until there is a target for them."""

    target: BadRows | None = None

    def add(self, error: BadRowError) -> None:
        if self.target is not None:
            self.target.add(error)
