"""Read CSV and TSV: a header, then one row per document; labels are separated in one cell."""

from __future__ import annotations

import ast
import csv
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Literal, TypeAlias

from setrnn.data.example import Example
from setrnn.data.read.lines import (
    RowProblem,
    check_length,
    decode,
    file_stem,
    has_mark,
    numbered_lines,
)
from setrnn.data.read.reader import BadRows, Format, ReadOptions
from setrnn.data.read.rows import check_columns, example_maker, read_rows
from setrnn.errors import DataError, count_of

DELIMITERS = (",", ";", "\t", "|")
N_LINES = 20  # looked at to find the delimiter
N_CELLS = 1000  # looked at to find the separator of labels
ONE_LABEL = "none"  # as a separator: each cell is one label
SEPARATORS = (",", "|", ";", "\t", "\n")  # that files use
MAX_LIST = 100_000  # characters
MIN_SHARE = 0.3  # of the cells with a separator, if splitting them does not give fewer labels

_TAGS = re.compile(r"\s*(?:<[^<>]+>)+\s*")
_SPREADSHEET_HINT = re.compile(r'"?sep=(.)"?\s*\Z', re.IGNORECASE)

# The first line of each row, and the cells of the row or what is wrong with it.
Rows: TypeAlias = Iterator[tuple[int, "list[str] | RowProblem"]]
DialectName: TypeAlias = Literal["excel", "plain"]


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Attributes:
        delimiter: what separates cells.
        separator: what separates labels in a cell.
        mark: whether the file begins with a byte order mark, which spreadsheets look for.

    Example:
        >>> Dialect(delimiter=";").separator
        ';'
    """

    delimiter: str = ","
    separator: str = ";"
    mark: bool = False


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one file."""
    return read_table(read_cells(path, options), path, options, bad_rows, "line")


def read_table(
    rows: Rows, path: Path, options: ReadOptions, bad_rows: BadRows, counted: str
) -> Iterator[Example]:
    """Stream the documents of a table, the header first; `counted` is "line" or "row"."""
    line, cells = next(rows, (0, None))
    if cells is None:
        return
    if isinstance(cells, RowProblem):
        raise DataError(f"{path} {counted} {line}: the header {cells}")
    header = [cell.strip() for cell in cells]
    check_columns(path, options, header)
    first = list(islice(rows, N_CELLS))
    if options.require_labels and options.label_separator != ONE_LABEL:
        place = header.index(options.labels_field)
        known = [row[place] for _, row in first if isinstance(row, list) and len(row) > place]
        _check_separator(path, known, options.label_separator)
    make = example_maker(options, file_stem(path))
    list_fields = [name for name in options.list_fields if name in header]
    row_numbers = count(1)

    def make_from_cells(cells: list[str], line: int) -> Example:
        number = next(row_numbers)  # ids count rows, not lines
        if len(cells) != len(header):
            raise RowProblem(
                f"has {count_of(len(cells), 'cell')}, the header has {len(header):,}. Put cells "
                "that hold the delimiter or a quote in quotes."
            )
        row = dict(zip(header, cells, strict=True))
        values: dict[str, object] = dict(row)
        for name in list_fields:
            values[name] = split_cell(row[name], options.label_separator)
        if not row.get(options.labels_field, "").strip():
            values[options.labels_field] = None  # which a list [] is not
        values[options.id_field] = row.get(options.id_field) or None
        example = make(values, number)
        return replace(example, columns=row) if options.keep_columns else example

    yield from read_rows(chain(first, rows), make_from_cells, bad_rows, f"{path.name} {counted}")


def read_cells(path: Path, options: ReadOptions) -> Rows:
    """Yield the rows of a table, without empty ones.

    A row of several lines that cannot be read raises DataError, since it may end anywhere.
    """
    max_bytes, n_bytes = options.max_row_bytes, 0
    # The csv module has one limit for all its readers (131,072 at first): only raise it.
    csv.field_size_limit(max(csv.field_size_limit(), min(max_bytes, 2**31 - 1)))
    lines = numbered_lines(path, max_bytes, options.encoding)
    first = list(islice(lines, N_LINES))
    delimiter, is_named = choose_delimiter([line for _, line in first], path, options)
    taken: list[int] = []  # the lines of a row
    undecoded: list[RowProblem] = []  # of these lines

    def take_line(entry: tuple[int, bytes]) -> str:
        nonlocal n_bytes
        taken.append(entry[0])
        n_bytes += len(entry[1])
        check_length(n_bytes, max_bytes)
        try:
            return decode(entry[1], max_bytes)
        except RowProblem as problem:  # the row is bad, but ends where it ends
            undecoded.append(problem)
            return entry[1].replace(b"\0", b"?").decode(errors="replace")

    # After an error, the reader begins a new row: `map` continues, as a generator would not.
    whole = chain(first[1:] if is_named else first, lines)
    reader = csv.reader(map(take_line, whole), delimiter=delimiter, strict=True)
    while True:
        taken.clear()
        undecoded.clear()
        n_bytes = 0
        cells: list[str] | None = []
        problem: RowProblem | None = None
        try:
            cells = next(reader, None)
        except (csv.Error, RowProblem) as error:
            problem = error if isinstance(error, RowProblem) else RowProblem(_advise(error))
            if len(taken) > 1:
                hint = "" if "not closed" in str(problem) else " Or is a quote before not closed?"
                raise DataError(
                    f"{path} line {taken[0]}: a row of {len(taken):,} lines {problem}{hint}"
                ) from error
        if cells is None:
            return
        # A line that cannot be decoded is the reason of what the csv module finds in it.
        problem = undecoded[0] if undecoded else problem
        if problem or cells:
            yield taken[0], problem or cells


def choose_delimiter(first: list[bytes], path: Path, options: ReadOptions) -> tuple[str, bool]:
    """Return the delimiter of a table, and whether a line above the header names it: `sep=;`.

    Spreadsheets write such a line. Otherwise the delimiter is found in the first lines.
    """
    lines = [line.decode(errors="replace") for line in first]
    if lines and (named := _SPREADSHEET_HINT.match(lines[0])):
        return named[1], True
    wanted = {*options.text_fields, options.labels_field, options.id_field}
    is_tsv = path.name.lower().removesuffix(".gz").endswith(".tsv")
    return find_delimiter(lines, wanted, "\t" if is_tsv else ","), False


def _advise(error: csv.Error) -> str:
    if "new-line" in str(error):
        return "holds a lone carriage return. Save the file with \\n or \\r\\n line ends."
    if "end of data" in str(error):
        return 'opens a quote (") that is not closed. Close it, and double quotes inside a cell.'
    return f"cannot be split into cells ({error}). Double the quotes inside a quoted cell."


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
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            rows = []
        if not rows:
            return 0, False, 0
        header = {cell.strip() for cell in rows[0]}
        whole = rows[1:-1] or rows[1:]  # the last one may continue behind these lines
        n_cells = len(rows[0])
        is_regular = n_cells > 1 and all(len(row) == n_cells for row in whole)
        return len(header.intersection(wanted)), is_regular, n_cells

    return max(dict.fromkeys([usual, *DELIMITERS]), key=rate)


def split_cell(cell: str, separator: str) -> list[str]:
    """Return the parts of a cell, without spaces around them; empty parts are left out.

    A cell that is a list of strings, as JSON and Python write it, is that list, and so is one that
    has tags alone: `<a><b>`.

    Example:
        >>> split_cell("Dramas, Comedies", ","), split_cell("Home, Garden", "none")
        (['Dramas', 'Comedies'], ['Home, Garden'])
        >>> split_cell("['Dramas', 'Comedies']", ";"), split_cell("<Dramas><Comedies>", ";")
        (['Dramas', 'Comedies'], ['Dramas', 'Comedies'])
    """
    if separator == ONE_LABEL:
        parts = [cell]
    elif (values := _read_list(cell)) is not None:
        parts = values
    else:
        parts = cell.split(None if separator == " " else separator)
    return [stripped for part in parts if (stripped := part.strip())]


def find_dialect(
    files: Collection[Path], options: ReadOptions, name: DialectName | None = None
) -> Dialect:
    """Return how to write a CSV file for people who have these files.

    That is as they are, for a spreadsheet: with a byte order mark, and the delimiter of the first
    table among them. Without a name, plain if all are UTF-8 without a mark, with commas, and none
    is a workbook of Excel.
    """
    separator = ";" if options.label_separator == ONE_LABEL else options.label_separator
    if name == "plain":
        return Dialect(separator=separator)
    delimiter, is_text = ",", not any(map(zipfile.is_zipfile, files))  # a workbook is one
    if table := next(filter(FORMAT.fits, files), None):
        lines = islice(numbered_lines(table, options.max_row_bytes, options.encoding), N_LINES)
        delimiter, _ = choose_delimiter([line for _, line in lines], table, options)
    is_plain = is_text and delimiter == "," and options.encoding is None
    is_plain = is_plain and not any(map(has_mark, files))
    return Dialect(delimiter, separator, mark=name == "excel" or not is_plain)


def _read_list(cell: str) -> list[str] | None:
    """Return the strings of a list as JSON or Python write it, or of tags; None for other cells."""
    if _TAGS.fullmatch(cell):
        return cell.strip()[1:-1].split("><")
    if cell[:1] != "[" or cell[-1:] != "]" or len(cell) > MAX_LIST:
        return None
    try:
        values = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    is_list = isinstance(values, list) and all(isinstance(each, str) for each in values)
    return values if is_list else None


def find_separator(cells: Collection[str]) -> str | None:
    """Return the separator that cells of labels seem to have; None if each is one label.

    A separator is one that many cells hold, or that turns them into fewer different labels.

    Example:
        >>> find_separator(["Dramas, Comedies", "Dramas", "Comedies"])
        ','
        >>> find_separator(["Dramas", "Comedies", "Sports", "Home, Garden"])
    """
    whole = Counter(cell.strip() for cell in cells)
    found = []
    for separator in SEPARATORS:
        n_holding = sum(n for cell, n in whole.items() if separator in cell)
        parts = {part for cell in whole for part in split_cell(cell, separator)}
        if n_holding and (len(parts) < len(whole) or n_holding >= MIN_SHARE * whole.total()):
            found.append((len(parts), -n_holding, separator))
    return min(found)[2] if found else None


def _check_separator(path: Path, cells: list[str], chosen: str) -> None:
    """Raise if the first cells of labels do not hold the chosen separator, but another one."""
    cells = [cell for cell in cells if cell.strip() and _read_list(cell) is None]
    meant = None if any(chosen in cell for cell in cells) else find_separator(cells)
    if meant is None:
        return
    option = {"\t": "$'\\t'", "\n": "$'\\n'"}.get(meant, f"'{meant}'")
    where = f" in the first {N_CELLS:,} documents" if len(cells) == N_CELLS else ""
    raise DataError(
        f"{path}: {len(set(map(str.strip, cells))):,} labels{where}, one per document: your "
        f"labels contain {option}. Did you mean --label-separator {option}? If each cell is one "
        f"label, give --label-separator {ONE_LABEL}."
    )


FORMAT = Format((".csv", ".csv.gz", ".tsv", ".tsv.gz"), read)
