"""Read one sheet of an Excel workbook as a table, and write one, through openpyxl."""

from __future__ import annotations

import datetime
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from setrnn.data.example import Example
from setrnn.data.read.delimited import Rows, read_table
from setrnn.data.read.lines import file_errors
from setrnn.data.read.reader import BadRows, Format, ReadOptions
from setrnn.errors import DataError, MissingExtraError, count_of, list_some, printable
from setrnn.progress import log

SUFFIX = ".xlsx"
MAX_ROWS, MAX_COLUMNS, MAX_CHARACTERS = 1_048_576, 16_384, 32_767  # of a sheet, and of a cell

# A workbook that grows so many times in memory, beyond so many bytes, is made to exhaust it.
_MAX_RATIO, _MIN_BOMB = 200, 1 << 28
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # in XML
_RETURN = "_x000D_"  # a carriage return in a cell


def import_openpyxl(purpose: str) -> Any:  # noqa: ANN401 (it has no types)
    """Return the library; raise MissingExtraError if it is not installed."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("openpyxl", "excel", purpose) from error
    return openpyxl


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one sheet: the named one, or the first that is visible."""
    openpyxl = import_openpyxl(f"Reading {path}")
    with file_errors(path), path.open("rb") as stream:
        _check_size(path, stream)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of formats and validations, which are not read
            try:
                book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            except Exception as error:  # of many classes: no list would be complete
                raise _damaged(path) from error
        sheet = _choose_sheet(path, book.worksheets, options.sheet, bad_rows)
        yield from read_table(_rows(path, sheet), path, options, bad_rows, "row")


def _check_size(path: Path, stream: BinaryIO) -> None:
    try:
        parts = zipfile.ZipFile(stream).infolist()
    except zipfile.BadZipFile as error:
        raise _damaged(path) from error
    size, packed = (sum(getattr(p, n) for p in parts) for n in ("file_size", "compress_size"))
    if size > max(_MAX_RATIO * packed, _MIN_BOMB):
        raise DataError(f"{path} takes {size:,} bytes of memory. Save its sheet as CSV.")


def _choose_sheet(path: Path, sheets: Sequence[Any], name: str | None, bad_rows: BadRows) -> Any:  # noqa: ANN401
    """Return the sheet that is read; note what else there is."""
    names = [sheet.title for sheet in sheets]
    listed = printable(list_some(names, 8) or "none")
    visible = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
    found = [sheet for sheet in sheets if sheet.title == name] if name else visible or sheets
    if not found:
        wanted = f"no sheet '{name}'" if name else "no sheet with cells"
        raise DataError(f"{path} has {wanted}: it has {listed}. Name one with --sheet.")
    if name is None and len(visible) > 1:
        bad_rows.note(
            f"{path.name}: only the sheet '{printable(found[0].title)}' of {listed} is read. "
            "--sheet names another."
        )
    return found[0]


def _rows(path: Path, sheet: Any) -> Rows:  # noqa: ANN401
    """Yield the rows of a sheet as text, without empty ones; each as long as the header."""
    n_columns = 0
    sheet.reset_dimensions()  # which are wrong in what some programs write
    rows = enumerate(sheet.iter_rows(values_only=True), start=1)
    while True:
        try:
            number, values = next(rows, (0, ()))
        except Exception as error:
            raise _damaged(path) from error
        if not number:
            return
        cells = list(map(_text, values))
        while cells and not cells[-1] and len(cells) != n_columns:
            cells.pop()
        if any(cells):
            n_columns = n_columns or len(cells)
            yield number, cells + [""] * (n_columns - len(cells))


def _text(value: object) -> str:
    """Return what a person sees in a cell, about."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return str(value.date())
    return "" if value is None else str(value).replace(_RETURN, "")


def _damaged(path: Path) -> DataError:
    return DataError(f"{path} is not a valid Excel workbook, or has a password. Save it again.")


def write_sheet(rows: Iterable[Sequence[Any]], header: Sequence[str], stream: BinaryIO) -> None:
    """Write rows of texts, numbers and truth values as a workbook of one sheet.

    Texts are cells of text, whatever they begin with: nothing runs as a formula.
    """
    openpyxl = import_openpyxl(f"Writing {SUFFIX}")
    from openpyxl.cell import WriteOnlyCell

    if len(header) > MAX_COLUMNS:
        raise DataError(f"{len(header):,} columns are more than Excel reads. Write .csv.")
    book = openpyxl.Workbook(write_only=True)
    sheet, n_cut = book.create_sheet("setrnn"), 0

    def make_cell(value: Any) -> Any:  # noqa: ANN401
        nonlocal n_cut
        if not isinstance(value, str):
            return value
        n_cut += len(value) > MAX_CHARACTERS
        cell = WriteOnlyCell(sheet, _ILLEGAL.sub("\ufffd", value)[:MAX_CHARACTERS])
        cell.data_type = "s"  # a formula would be another type
        return cell

    sheet.append(list(map(make_cell, header)))
    for number, row in enumerate(rows, start=2):
        if number > MAX_ROWS:
            raise DataError(f"More than {MAX_ROWS:,} rows are more than Excel reads. Write .csv.")
        sheet.append(list(map(make_cell, row)))
    book.save(stream)
    if n_cut:
        log.warning(
            f"{count_of(n_cut, 'cell')} had more than {MAX_CHARACTERS:,} characters, the most that "
            "Excel reads, and was cut. A .csv or .parquet file keeps all."
        )


FORMAT = Format((SUFFIX, ".xlsm"), read)
