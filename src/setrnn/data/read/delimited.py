"""Read CSV and TSV: a header, then one row per document; labels are separated in one cell."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import TypeAlias

from setrnn.data.example import Example
from setrnn.data.read.label_cells import ONE_LABEL, SeparatorCheck, split_cell
from setrnn.data.read.printing import printable
from setrnn.data.read.reader import (
    BadRows,
    ReadOptions,
    file_errors,
    file_format,
    file_stem,
    numbered_lines,
)
from setrnn.data.read.row import (
    RowProblem,
    bad_line,
    check_columns,
    decode,
    example_maker,
    read_rows,
    too_long,
)
from setrnn.errors import DataError

DELIMITERS = (",", ";", "\t", "|")
N_LINES = 20  # looked at

_SPREADSHEET_HINT = re.compile(r'"?sep=(.)"?\s*\Z', re.IGNORECASE)

# After an unclosed quote, lines are read again from the next line on. The bytes read again are at
# most this many times the largest row.
_MAX_REREAD = 10

# The first line of each row, and the cells of the row or what is wrong with it.
Rows: TypeAlias = Iterator[tuple[int, "list[str] | RowProblem"]]


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one file."""
    rows = _Lines(path, options).rows()
    header = _read_header(path, options, rows)
    if header is None:
        return
    make = example_maker(options, file_stem(path), is_decoded=True)
    row_numbers = count(1)
    check = SeparatorCheck(options.label_separator if options.require_labels else ONE_LABEL)

    def say(problem: str | None) -> None:
        if problem is not None and check.is_certain:
            raise DataError(f"{path}: {problem}")
        if problem is not None:
            bad_rows.note(f"{path}: {problem}")

    def make_from_cells(cells: list[str], line: int) -> Example:
        number = next(row_numbers)  # ids count rows, not lines
        row = _name_cells(header, cells)
        if check.is_open:
            say(check.add(row[options.labels_field]))
        example = make(_split_lists(row, options), number)
        return replace(example, columns=row) if options.keep_columns else example

    yield from read_rows(rows, make_from_cells, bad_rows, f"{printable(path.name)} line")
    say(check.find_problem())


def read_table(
    path: Path, columns: tuple[str, ...], encoding: str | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the cells of each row of a table that must have these columns."""
    rows = read_cells(path, columns, encoding)
    _, first = next(rows, (0, None))
    header = [cell.strip() for cell in first] if isinstance(first, list) else []
    if missing := [name for name in columns if header.count(name) != 1]:
        raise DataError(
            f"{path} must have one column '{missing[0]}': its first line must name the columns "
            f"{','.join(columns)}."
        )
    for line, cells in rows:
        try:
            if isinstance(cells, RowProblem):
                raise cells
            yield line, _name_cells(header, cells)
        except RowProblem as problem:
            raise bad_line(path, line, problem) from None


def read_cells(path: Path, columns: tuple[str, ...], encoding: str | None = None) -> Rows:
    """Yield the line and the cells of each row of a table, which probably has these columns."""
    with file_errors(path):
        yield from _Lines(path, ReadOptions(text_field=",".join(columns), encoding=encoding)).rows()


class _Lines:
    """The lines of a file for the csv module, read so that a broken row does not spoil the next.

    After an unclosed quote, reading continues at the next line.
    """

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path = path
        self._max_bytes = options.max_row_bytes
        self._wanted = {*options.text_fields, options.labels_field, options.id_field}
        self._lines = numbered_lines(path, options.max_row_bytes, options.encoding)
        self._again: deque[tuple[int, bytes]] = deque()
        self._taken: list[tuple[int, bytes]] = []
        self._n_bytes = 0
        self._n_reread = 0
        self._problem: RowProblem | None = None
        # The csv module has one limit for all its readers (131,072 at first): only raise it.
        limit = min(options.max_row_bytes, 2**31 - 1)
        csv.field_size_limit(max(csv.field_size_limit(), limit))

    def rows(self) -> Rows:
        """Yield the rows, without empty ones."""
        reader = csv.reader(self, delimiter=self._delimiter(), strict=True)
        cells: list[str] | None = []
        while cells is not None:
            self._taken, self._n_bytes, self._problem = [], 0, None
            try:
                cells = next(reader, None)
            except csv.Error as error:
                self._give_back()
                # A line that cannot be decoded is the reason of what the csv module finds in it.
                undecoded = self._problem if len(self._taken) == 1 else None
                self._problem = undecoded or RowProblem(_quoting_advice(error))
            except RowProblem as problem:
                self._give_back()
                self._problem = problem
            if self._problem or cells:
                yield self._taken[0][0], self._problem or cells or []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Give a line to the csv module; `rows` reports what is wrong with it."""
        number, line = self._again.popleft() if self._again else next(self._lines)
        self._taken.append((number, line))
        self._n_bytes += len(line)
        if self._n_bytes > self._max_bytes:
            raise too_long(self._max_bytes)
        try:
            return decode(line)
        except RowProblem as problem:
            self._problem = problem
            return line.replace(b"\0", b"?").decode(errors="replace")

    def _delimiter(self) -> str:
        """Look at the first lines, which are then read again."""
        self._again.extend(islice(self._lines, N_LINES))
        first = [line.decode(errors="replace") for _, line in self._again]
        if first and (named := named_delimiter(first[0])):
            self._again.popleft()
            return named
        name = self._path.name.lower().removesuffix(".gz")
        return find_delimiter(first, self._wanted, "\t" if name.endswith(".tsv") else ",")

    def _give_back(self) -> None:
        """Put back the lines of a broken row, except its first."""
        self._n_reread += self._n_bytes
        if self._n_reread > _MAX_REREAD * self._max_bytes:
            raise DataError(
                f"{self._path} line {self._taken[0][0]}: too many quotes are not closed. "
                "Double the quotes inside cells, or convert the file to .jsonl."
            )
        self._again.extendleft(reversed(self._taken[1:]))


def _quoting_advice(error: csv.Error) -> str:
    if "new-line" in str(error):
        return "holds a lone carriage return. Save the file with \\n or \\r\\n line ends."
    if "end of data" in str(error):
        return 'opens a quote (") that is not closed. Close it, and double quotes inside a cell.'
    return f"cannot be split into cells ({error}). Double the quotes inside a quoted cell."


def _read_header(path: Path, options: ReadOptions, rows: Rows) -> list[str] | None:
    """Read and check the column names; return None if the file is empty."""
    line, cells = next(rows, (0, None))
    if cells is None:
        return None
    if isinstance(cells, RowProblem):
        raise DataError(f"{path} line {line}: the header {cells}")
    header = [cell.strip() for cell in cells]
    check_columns(path, options, header)
    used = {options.id_field, *options.text_fields, *options.list_fields}
    for name in header:
        if name in used and header.count(name) > 1:
            raise DataError(f"{path} has two columns '{printable(name)}'. Rename or remove one.")
    return header


def _name_cells(header: list[str], cells: list[str]) -> dict[str, str]:
    """Return a row by column names."""
    if len(cells) != len(header):
        raise RowProblem(
            f"has {len(cells)} cell{'' if len(cells) == 1 else 's'}, the header has {len(header)}. "
            "Put cells that hold the delimiter or a quote in quotes."
        )
    return dict(zip(header, cells, strict=True))


def _split_lists(cells: Mapping[str, str], options: ReadOptions) -> dict[str, object]:
    """Split the cells that hold several strings; an empty id is none."""
    row: dict[str, object] = dict(cells)
    for name in options.list_fields:
        if name in cells:
            row[name] = split_cell(cells[name], options.label_separator)
    if not row.get(options.id_field):
        row[options.id_field] = None
    return row


def named_delimiter(first_line: str) -> str | None:
    """Return the delimiter that a spreadsheet wrote above the header, as in `sep=;`."""
    found = _SPREADSHEET_HINT.match(first_line)
    return found[1] if found else None


def find_delimiter(lines: Sequence[str], wanted: Collection[str], usual: str = ",") -> str:
    """Return the delimiter under which the first lines look most like a table.

    Args:
        lines: the first lines, the header first.
        wanted: the columns to read; the header probably names them.
        usual: the delimiter to prefer.

    Example:
        >>> find_delimiter(["id;text;labels", "1;One, two, three;x"], ["text", "labels"])
        ';'
    """

    def rate(delimiter: str) -> tuple[int, bool, int]:
        rows = _split(lines, delimiter)
        if not rows:
            return 0, False, 0
        header = {cell.strip() for cell in rows[0]}
        whole = rows[1:-1] or rows[1:]  # the last one may continue behind these lines
        n_cells = len(rows[0])
        is_regular = n_cells > 1 and all(len(row) == n_cells for row in whole)
        return len(header.intersection(wanted)), is_regular, n_cells

    return max(dict.fromkeys([usual, *DELIMITERS]), key=rate)


def find_header(lines: Sequence[str], wanted: Collection[str]) -> list[str]:
    """Return the cells of the first line, if the lines are a table."""
    rows = _split(lines, find_delimiter(lines, wanted))
    return [cell.strip() for cell in rows[0]] if rows else []


def _split(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return []


FORMAT = file_format(read, (".csv", ".csv.gz", ".tsv", ".tsv.gz"))
