"""What a report is made of: tables and figures, before they take a form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str  # as people read it: ".741 ± .002"
    value: float | None = None  # what it is sorted by; None: nothing there
    is_best: bool = False  # the best of its column, and it stands
    is_tied: bool = False  # not told apart from the best of its column
    note: str = ""  # more of it: the 95% interval, the p-value
    more: Mapping[str, float | None] = field(default_factory=dict)  # as numbers: std, low, high, p


@dataclass(frozen=True)
class Row:
    """One row of a table: what it is about, and its cells."""

    name: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    """A table: a header for each cell, and the rows."""

    name: str  # of its files: "systems" becomes systems.csv, systems.tex ...
    title: str
    caption: str  # how to read it
    headers: Sequence[str]
    rows: Sequence[Row]
    row_header: str = "system"
    groups: Sequence[tuple[str, int]] = ()  # above the headers: a name, and how many it spans


@dataclass(frozen=True)
class Figure:
    """A figure, drawn."""

    name: str  # of its file: "entropy" becomes entropy.svg
    title: str
    caption: str  # how to read it
    alt: str  # what it shows, for those who do not see it
    svg: str
