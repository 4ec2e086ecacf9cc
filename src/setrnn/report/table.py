"""A table of a report: each column is described once, and written as Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setrnn.data.read.write import neutralise
from setrnn.report.wording import format_p, format_score


@dataclass(frozen=True)
class Estimate:
    """A number and what is known of it."""

    value: float
    std: float | None = None  # over seeds
    low: float | None = None  # the 95% interval
    high: float | None = None
    p: float | None = None
    tests: int | None = None  # for whose number p is corrected
    mark: str = ""  # "best": better than all others of its column; "tied": perhaps the best
    text: str = ""  # instead of the number
    remark: str = ""

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate | None:
        """Return the mean and the standard deviation of the values of runs; None without any."""
        if not values:
            return None
        std = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)), std)


Value = str | float | Estimate | None


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table: its header, how to get its value from a row, how to write it."""

    header: str
    get: Callable[[Any], Value]
    format: Callable[[float], str] = format_score
    direction: str = ""  # which values are better: "higher", "lower" or "" for neither

    def show(self, value: Value) -> Cell:
        """Write a value for people."""
        if value is None or isinstance(value, str):
            return Cell(value or "")
        if not isinstance(value, Estimate):
            return Cell(self.format(value), float(value))
        text = value.text or self.format(value.value)
        if value.std is not None and not value.text:
            text += f" ± {self.format(value.std)}"
        notes = []
        if value.low is not None and value.high is not None:
            notes.append(f"95% {self.format(value.low)} to {self.format(value.high)}")
        if value.p is not None:
            notes.append(format_p(value.p))
        if value.remark:
            notes.append(value.remark)
        return Cell(text, value.value, value.mark, tuple(notes))


@dataclass(frozen=True)
class Cell:
    """A value as people read it."""

    text: str  # ".741 ± .002"
    value: float | None = None  # the number to sort by
    mark: str = ""
    notes: tuple[str, ...] = ()  # the interval, the p-value


@dataclass(frozen=True)
class Table:
    """A table; its columns get their values from the rows, whatever these are."""

    name: str  # of its files: "systems" becomes systems.csv and systems.md
    title: str
    caption: str  # how to read the table
    columns: Sequence[Column]  # the first one names the rows
    rows: Sequence[Any]

    @cached_property
    def values(self) -> Mapping[Column, Sequence[Value]]:
        """The values of each column that has any."""
        found = {column: [column.get(row) for row in self.rows] for column in self.columns}
        return {
            column: values
            for column, values in found.items()
            if any(each is not None and each != "" for each in values)
        }

    @property
    def cells(self) -> list[list[Cell]]:
        """The cells of each row."""
        columns = [[column.show(each) for each in values] for column, values in self.values.items()]
        return [list(row) for row in zip(*columns, strict=True)]

    def sorted_by(self, header: str) -> Table:
        """Return the table with the best rows of a column first, those without a number last."""
        column = next(each for each in self.columns if each.header == header)
        sign = 1 if column.direction == "lower" else -1

        def key(row: Any) -> float:  # noqa: ANN401 (whatever the columns take)
            value = column.show(column.get(row)).value
            return np.inf if value is None else sign * value

        return replace(self, rows=sorted(self.rows, key=key))


def to_markdown(table: Table) -> str:
    """Write a table as Markdown, with tied cells in italics instead of underlined."""
    headers = [_escape(column.header) for column in table.values]
    lines = [_markdown_row(headers), _markdown_row(["---"] * len(headers))]
    lines += [_markdown_row(map(_markdown_cell, row)) for row in table.cells]
    caption = _escape(table.caption.replace("Underlined", "In italics"))
    return "\n".join([f"**{_escape(table.title)}.** {caption}", "", *lines]) + "\n"


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    around = {"best": "**", "tied": "*"}.get(cell.mark, "")
    return f"{around}{_escape(cell.text)}{around}"


def _escape(text: str) -> str:
    plain = " ".join(text.split())
    return "".join("\\" + each if each in "\\|*_`<[" else each for each in plain)


def to_csv(table: Table) -> str:
    """Write a table as CSV: for each header a column of plain numbers, and related columns.

    `X` is the value; `X std`, `X low`, `X high`, `X p` and `X tests`, for which p is corrected,
    follow where they are known; `X mark` is "best" or "tied"; `X text` is the text of a cell
    without a value, such as "failed".
    """
    columns: dict[str, list[str]] = {}
    for column, values in table.values.items():
        header = column.header
        if all(each is None or isinstance(each, str) for each in values):
            columns[header] = [str(each or "") for each in values]
            continue
        known = [
            each if isinstance(each, Estimate) else Estimate(each)
            for each in (
                np.nan if each is None or isinstance(each, str) else each for each in values
            )
        ]
        columns[header] = ["" if np.isnan(each.value) else str(float(each.value)) for each in known]
        for name in ("std", "low", "high", "p", "tests", "mark"):
            more = [getattr(each, name) for each in known]
            if any(each not in (None, "") for each in more):
                columns[f"{header} {name}"] = ["" if each is None else str(each) for each in more]
        if any(isinstance(each, str) and each for each in values):
            columns[f"{header} text"] = [each if isinstance(each, str) else "" for each in values]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(neutralise, columns))
    writer.writerows(map(neutralise, row) for row in zip(*columns.values(), strict=True))
    return stream.getvalue()


FORMS = {"csv": to_csv, "md": to_markdown}
