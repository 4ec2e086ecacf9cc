"""The forms a table takes: Markdown, CSV, LaTeX; and a comparison's numbers as plain values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from setrnn.comparison.records import Comparison, Record
from setrnn.comparison.statistics import MEASURES, Bootstrap
from setrnn.report.parts import Cell, Table
from setrnn.report.score_tables import own_entries

_LINE = 40  # characters of a text that still fits into a LaTeX column
# What LaTeX reads as commands, and what its fonts lack.
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
    "[": "{[}",  # at the start of a row it would be an option of the line before
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


def to_markdown(table: Table) -> str:
    """Write a table for Markdown: bold as is, those not told apart in italics."""
    headers = [table.row_header, *full_headers(table)]
    lines = [_markdown_row(map(_markdown_text, headers)), _markdown_row(["---"] * len(headers))]
    lines += [
        _markdown_row([_markdown_text(row.name), *map(_markdown_cell, row.cells)])
        for row in table.rows
    ]
    caption = _markdown_text(table.caption.replace("Underlined", "In italics"))
    return "\n".join([f"**{_markdown_text(table.title)}.** {caption}", "", *lines]) + "\n"


def to_csv(table: Table) -> str:
    """Write a table for programs: a column of plain numbers for each header, more beside it.

    `X` is the value, `X std`, `X low`, `X high` and `X p` what there is of it, `X mark` is best or
    tied, and `X text` is what stands where there is no value, such as failed.
    """
    columns: list[tuple[str, list[Any]]] = [
        (table.row_header, [row.name for row in table.rows]),
    ]
    for number, header in enumerate(full_headers(table)):
        columns += _csv_columns(header, [row.cells[number] for row in table.rows])
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([name for name, _ in columns])
    writer.writerows(zip(*(values for _, values in columns), strict=True))
    return stream.getvalue()


def to_latex(table: Table) -> str:
    """Write a table in the paper's form; it needs no package."""
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


def summary_json(
    comparison: Comparison, records: Sequence[Record], bootstrap: Bootstrap
) -> dict[str, Any]:
    """Give every number of a comparison as plain values: scores, intervals, p-values, costs."""
    own = own_entries(records, bootstrap)
    entries = list(own.values())
    scores: dict[str, dict[str, Any]] = {}
    for entry in bootstrap.entries:
        scores.setdefault(entry.system, {})[entry.rule] = {
            measure: {
                **asdict(bootstrap.summary(entry, measure)),
                "by_seed": bootstrap.scores(entry, measure),
            }
            for measure in MEASURES
        }
    return {
        "data": comparison.data,
        "data_hash": comparison.data_hash,
        "n_documents": dict(comparison.n_documents),
        "n_labels": comparison.n_labels,
        "n_draws": bootstrap.n_draws,
        "own_rules": {name: entry.rule for name, entry in own.items()},
        "scores": scores,
        "standings": {
            measure: _standing(bootstrap, own, measure) for measure in MEASURES if entries
        },
        "differences": {
            measure: [
                {"first": first.system, "second": second.system, **asdict(difference)}
                for (first, second), difference in bootstrap.pairs(entries, measure).items()
            ]
            for measure in MEASURES
        },
        "costs": {record.name: asdict(record.costs) for record in records if record.costs},
        "failures": {record.name: asdict(record.failure) for record in records if record.failure},
    }


def _standing(bootstrap: Bootstrap, own: dict[str, Any], measure: str) -> dict[str, Any]:
    standing = bootstrap.standing(list(own.values()), measure)
    return {
        "best": standing.best.system,
        "stands": standing.stands,
        "tied": [name for name, entry in own.items() if entry in standing.tied],
        "p": {entry.system: p for entry, p in standing.p.items()},
    }


def full_headers(table: Table) -> list[str]:
    """Return the headers with their groups before them."""
    groups = [name for name, n in table.groups for _ in range(n)] or [""] * len(table.headers)
    return [
        f"{group} {header}".strip() for group, header in zip(groups, table.headers, strict=True)
    ]


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
    """Choose how a column is set: numbers in its middle, long texts in lines."""
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
