"""A table of a report, and its forms: Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str  # as people read it: ".741 ± .002"
    value: float | None = None  # the number to sort by; None where there is none
    is_best: bool = False  # significantly better than all others of its column
    is_tied: bool = False  # not significantly different from the best of its column
    note: str = ""  # the 95% interval, the p-value; parts are separated by "; "
    more: Mapping[str, float | None] = field(default_factory=dict)  # as numbers: std, low, high, p


NO_CELL = Cell("")


@dataclass(frozen=True)
class Row:
    """One row of a table: its name and its cells."""

    name: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    """A table: one header per cell, and the rows."""

    name: str  # of its files: "systems" becomes systems.csv and systems.md
    title: str
    caption: str  # how to read the table
    headers: Sequence[str]
    rows: Sequence[Row]
    row_header: str = "system"
    groups: Sequence[tuple[str, int]] = ()  # above the headers: a name, and how many it spans

    @property
    def full_headers(self) -> list[str]:
        """The headers, each after the name of its group."""
        groups = [name for name, n in self.groups for _ in range(n)] or [""] * len(self.headers)
        return [
            f"{group} {header}".strip() for group, header in zip(groups, self.headers, strict=True)
        ]


def to_markdown(table: Table) -> str:
    """Write a table as Markdown, with tied cells in italics instead of underlined."""
    headers = [table.row_header, *table.full_headers]
    lines = [_markdown_row(map(_markdown_text, headers)), _markdown_row(["---"] * len(headers))]
    lines += [
        _markdown_row([_markdown_text(row.name), *map(_markdown_cell, row.cells)])
        for row in table.rows
    ]
    caption = _markdown_text(table.caption.replace("Underlined", "In italics"))
    return "\n".join([f"**{_markdown_text(table.title)}.** {caption}", "", *lines]) + "\n"


def to_csv(table: Table) -> str:
    """Write a table as CSV: for each header a column of plain numbers, and related columns.

    `X` is the value; `X std`, `X low`, `X high`, `X p` and `X tests`, for which p is corrected,
    follow where they are known; `X mark` is "best" or "tied"; `X text` is the text of a cell
    without a value, such as "failed".
    """
    columns: list[tuple[str, list[Any]]] = [(table.row_header, [row.name for row in table.rows])]
    for number, header in enumerate(table.full_headers):
        columns += _csv_columns(header, [row.cells[number] for row in table.rows])
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([name for name, _ in columns])
    writer.writerows(zip(*(values for _, values in columns), strict=True))
    return stream.getvalue()


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_text(text: str) -> str:
    plain = " ".join(text.split())
    return "".join("\\" + each if each in "\\|*_`<[" else each for each in plain)


def _markdown_cell(cell: Cell) -> str:
    text = _markdown_text(cell.text)
    if cell.is_best:
        return f"**{text}**"
    return f"*{text}*" if cell.is_tied and text else text


def _csv_columns(header: str, cells: Sequence[Cell]) -> list[tuple[str, list[Any]]]:
    if all(cell.value is None for cell in cells):
        return [(header, [cell.text for cell in cells])]
    columns: list[tuple[str, list[Any]]] = [(header, [_csv_value(cell.value) for cell in cells])]
    columns += [
        (f"{header} {name}", [_csv_value(cell.more.get(name)) for cell in cells])
        for name in dict.fromkeys(name for cell in cells for name in cell.more)
    ]
    if any(cell.is_best or cell.is_tied for cell in cells):
        marks = ["best" if cell.is_best else "tied" if cell.is_tied else "" for cell in cells]
        columns.append((f"{header} mark", marks))
    if any(cell.value is None and cell.text for cell in cells):
        texts = [cell.text if cell.value is None else "" for cell in cells]
        columns.append((f"{header} text", texts))
    return columns


def _csv_value(value: float | None) -> str:
    return "" if value is None else repr(float(value))
