"""Read CSV and TSV: a header, then one row per document; labels are separated in one cell."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.formats.reader import (
    BadRows,
    Format,
    ReadOptions,
    Split,
    file_splits,
    file_stem,
    numbered_lines,
)
from setrnn.data.formats.row import (
    RowProblem,
    bad_line,
    check_columns,
    example_maker,
    not_utf8,
    nul_byte,
    printable,
    too_long,
)
from setrnn.errors import DataError

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")

# After an unclosed quote, lines are read again from the next line on. The bytes read again are at
# most this many times the largest row.
_MAX_REREAD = 10


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find CSV and TSV files."""
    return file_splits(place, options, SUFFIXES, read)


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one file."""
    rows = _Rows(path, options)
    header = _header(path, options, rows)
    if header is None:
        return
    make = example_maker(options, file_stem(path))
    number = 0
    while True:
        try:
            cells = rows.next()
            if cells is None:
                return
            if not cells:
                continue
            number += 1
            example = make(_name_cells(header, cells, options), number)
        except RowProblem as problem:
            bad_rows.add(bad_line(path, rows.first_line, problem))
            continue
        yield example


class _Rows:
    """Rows of cells, read so that a broken row does not spoil those after it.

    After an unclosed quote, reading continues at the next line.
    """

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path = path
        self._max_bytes = options.max_row_bytes
        self._lines = numbered_lines(path, options.max_row_bytes)
        self._again: deque[tuple[int, bytes]] = deque()
        self._taken: list[tuple[int, bytes]] = []
        self._n_bytes = 0
        self._n_reread = 0
        self._problem: RowProblem | None = None
        # The csv module has one limit for all its readers (131,072 at first): only raise it.
        limit = min(options.max_row_bytes, 2**31 - 1)
        csv.field_size_limit(max(csv.field_size_limit(), limit))
        self._reader = csv.reader(self, delimiter=self._delimiter(), strict=True)

    @property
    def first_line(self) -> int:
        """The line where the current row begins."""
        return self._taken[0][0]

    def next(self) -> list[str] | None:
        """Return the cells of the next row, or None at the end; raise RowProblem if it is bad."""
        self._taken, self._n_bytes, self._problem = [], 0, None
        try:
            cells = next(self._reader, None)
        except csv.Error as error:
            self._give_back()
            raise RowProblem(_quoting_advice(error)) from None
        except RowProblem:
            self._give_back()
            raise
        if self._problem is not None:
            raise self._problem
        return cells

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Give a line to the csv module; `next` reports what is wrong with it."""
        number, line = self._again.popleft() if self._again else next(self._lines)
        self._taken.append((number, line))
        self._n_bytes += len(line)
        if self._n_bytes > self._max_bytes:
            raise too_long(self._max_bytes)
        if b"\0" in line:
            self._problem = nul_byte()
            line = line.replace(b"\0", b"?")
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            self._problem = RowProblem(not_utf8(error))
            return line.decode(errors="replace")

    def _delimiter(self) -> str:
        name = self._path.name.lower().removesuffix(".gz")
        if name.endswith((".csv", ".tsv")):
            return "\t" if name.endswith(".tsv") else ","
        self._again.extend(line for line in [next(self._lines, None)] if line)
        return "\t" if self._again and b"\t" in self._again[0][1] else ","

    def _give_back(self) -> None:
        """Put back the lines of a broken row, except its first."""
        self._n_reread += self._n_bytes
        if self._n_reread > _MAX_REREAD * self._max_bytes:
            raise DataError(
                f"{self._path} line {self.first_line}: too many quotes are not closed. "
                "Double the quotes inside cells, or convert the file to .jsonl."
            )
        self._again.extendleft(reversed(self._taken[1:]))


def _quoting_advice(error: csv.Error) -> str:
    if "new-line" in str(error):
        return "holds a lone carriage return. Save the file with \\n or \\r\\n line ends."
    if "end of data" in str(error):
        return 'opens a quote (") that is not closed. Close it, and double quotes inside a cell.'
    return f"cannot be split into cells ({error}). Double the quotes inside a quoted cell."


def _header(path: Path, options: ReadOptions, rows: _Rows) -> list[str] | None:
    """Read and check the column names; return None if the file is empty."""
    try:
        cells = rows.next()
        while cells == []:
            cells = rows.next()
    except RowProblem as problem:
        raise DataError(f"{path} line {rows.first_line}: the header {problem}") from None
    if cells is None:
        return None
    header = [cell.strip() for cell in cells]
    check_columns(path, options, header)
    used = {options.id_field, *options.text_fields, *options.list_fields}
    for name in header:
        if name in used and header.count(name) > 1:
            raise DataError(f"{path} has two columns '{printable(name)}'. Rename or remove one.")
    return header


def _name_cells(header: list[str], cells: list[str], options: ReadOptions) -> dict[str, object]:
    """Return a row by column names; split the cells that hold several strings."""
    if len(cells) != len(header):
        raise RowProblem(
            f"has {len(cells)} cells, the header has {len(header)}. "
            "Put cells that hold the delimiter or a quote in quotes."
        )
    row: dict[str, object] = dict(zip(header, cells, strict=True))
    for name in options.list_fields:
        if name in row:
            row[name] = _split(name, str(row[name]), options.label_separator)
    if not row.get(options.id_field):
        row[options.id_field] = None
    return row


def _split(name: str, cell: str, separator: str) -> list[str]:
    parts = [part.strip() for part in cell.split(None if separator.isspace() else separator)]
    if parts == [""]:
        return []
    if "" in parts:
        raise RowProblem(f"'{name}' holds an empty string. Remove the extra '{separator}'.")
    return parts


FORMAT = Format(find, SUFFIXES, has_fields=True)
