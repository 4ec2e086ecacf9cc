"""A table of a report, and its forms: Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_LINE = 40  # characters of the longest text that fits into a LaTeX column without wrapping
# Characters that LaTeX reads as commands, and characters that its usual fonts lack.
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # at the start of a row LaTeX would read it as an option of the previous line
    "*": "{*}",
    "±": r"$\pm$",
    "→": r"$\to$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "−": "$-$",  # noqa: RUF001 (a minus, not a hyphen)
    "×": r"$\times$",  # noqa: RUF001 (times)
    "∈": r"$\in$",
    "Σ": r"$\Sigma$",
    "Π": r"$\Pi$",
    "π": r"$\pi$",
    "…": r"\ldots{}",
}


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

    name: str  # of its files: "systems" becomes systems.csv, systems.tex ...
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


def to_latex(table: Table) -> str:
    """Write a table as LaTeX in the form of the paper's tables; no package is needed."""
    spans = [n for _, n in table.groups] or [len(table.headers)]
    letters = [
        _latex_column([row.cells[number] for row in table.rows]) for number in range(sum(spans))
    ]
    form, start = "|l|", 0
    for span in spans:
        form += "".join(letters[start : start + span]) + "|"
        start += span
    lines = [r"\begin{table*}[t]", r"\begin{center}", rf"\begin{{tabular}}{{{form}}}", r"\hline"]
    if table.groups:
        over = [rf"\multicolumn{{{n}}}{{c|}}{{{_latex_text(name)}}}" for name, n in table.groups]
        lines += [" & ".join(["", *over]).strip() + r" \\", rf"\cline{{2-{sum(spans) + 1}}}"]
    headers = [table.row_header, *table.headers]
    lines += [" & ".join(map(_latex_text, headers)) + r" \\", r"\hline"]
    lines += [
        " & ".join([_latex_text(row.name), *map(_latex_cell, row.cells)]) + r" \\"
        for row in table.rows
    ]
    lines += [
        r"\hline",
        r"\end{tabular}",
        r"\end{center}",
        rf"\caption{{{_latex_text(table.caption)}}}",
        rf"\label{{table:{table.name}}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


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


def _latex_column(cells: Sequence[Cell]) -> str:
    """Choose the form of a column: numbers are centred, long texts wrap."""
    if any(cell.value is not None for cell in cells):
        return "c"
    is_long = any(len(cell.text) > _LINE for cell in cells)
    return r"p{.38\textwidth}" if is_long else "l"


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(each, each) for each in " ".join(text.split()))


def _latex_cell(cell: Cell) -> str:
    text = _latex_text(cell.text) or "-"
    if cell.is_best:
        return rf"\textbf{{{text}}}"
    return rf"\underline{{{text}}}" if cell.is_tied else text
