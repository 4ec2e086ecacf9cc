"""The tables that several commands print: one look for all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from rich import box
from rich.table import Table
from rich.text import Text

from setrnn.cli.terminal import stdout
from setrnn.metrics import LOWER_IS_BETTER, MEASURES, write_measure

Row: TypeAlias = Sequence[str | Text]

MAX_NAME_WIDTH = 18  # of the first column, which other columns do not make narrower
SPACE = 3  # between two columns


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Row],
    caption: str = "",
    words: Sequence[str] = (),
) -> None:
    """Print rows of text under a title, with a caption below.

    If all columns hold numbers and do not fit into the terminal, the last ones are left out.

    Args:
        title: what the table shows.
        columns: the names of the columns.
        rows: one text per column.
        caption: what to know about the values.
        words: the columns of words, which are to the left and wrapped, beside the first one. All
            others hold numbers.
    """
    cells = [[each if isinstance(each, Text) else Text(each) for each in row] for row in rows]
    n_shown = len(columns) if words else _count_fitting(columns, cells)
    left_out = [" ".join(name.split()) for name in columns[n_shown:]]
    columns = columns[:n_shown]
    longest = max((len(row[0].plain) for row in cells), default=0)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(columns[0], overflow="fold", min_width=min(longest, MAX_NAME_WIDTH))
    for name in columns[1:]:
        is_number = name not in words
        justify: Any = "right" if is_number else "left"
        table.add_column(Text(name), justify=justify, no_wrap=is_number, overflow="fold")
    for row in cells:
        table.add_row(*row[:n_shown])
    stdout.print()
    if title:
        stdout.print(Text(title, "bold"))
    stdout.print(table)
    if caption:
        stdout.print(Text(caption, "italic"))
    if left_out:
        stdout.print(f"Not shown, as the terminal is too narrow: {', '.join(left_out)}.")


def _count_fitting(columns: Sequence[str], cells: Sequence[Sequence[Text]]) -> int:
    """Count the columns that fit into the terminal, the first two in any case."""
    texts = [[name, *(row[n].plain for row in cells)] for n, name in enumerate(columns)]
    widths = [
        max(len(line) for each in column for line in [*each.split("\n"), ""]) for column in texts
    ]
    widths[0] = min(widths[0], MAX_NAME_WIDTH)
    n_shown = len(columns)
    while n_shown > 2 and sum(widths[:n_shown]) + SPACE * (n_shown - 1) > stdout.width:
        n_shown -= 1
    return n_shown


def show_measures(
    title: str,
    rows: Mapping[str, Mapping[str, Any]],
    measures: Mapping[str, str] = MEASURES,
    caption: str = "",
) -> None:
    """Print measures, one system per row; the best value of each column is bold.

    Args:
        title: what was measured, and where.
        rows: the values of each system by the key of the measure; one may lack some.
        measures: the names of the measures to show, by their keys.
        caption: what to know about the values.
    """

    def cell(key: str, value: float | None) -> str | Text:
        if value is None:
            return ""
        known = [row[key] for row in rows.values() if row.get(key) is not None]
        best = (min if key in LOWER_IS_BETTER else max)(known)
        return Text(write_measure(value, key), "bold" if value == best and len(rows) > 1 else "")

    columns = ["", *(re.sub(r" (?!p)|(?<=-)", "\n", name) for name in measures.values())]
    cells = ([name, *(cell(key, row.get(key)) for key in measures)] for name, row in rows.items())
    show_table(title, columns, cells, caption)


def show_members(found: Mapping[str, Any]) -> None:
    """Print what each member of a mixture gives, and the mixture: each measure by its own rule.

    The measures are held out: those of fitted weights and thresholds would mislead.
    """
    names = [*found["members"], "mixture"]
    rows: dict[str, dict[str, float]] = {name: {} for name in names}
    columns = {
        each["measure"]: [*each["members_held_out"], each["held_out"]]
        for each in found["rules"].values()
    }
    likelihood = found["log_likelihood"]
    columns["log_prob"] = [*likelihood["members"], likelihood["mixture"]]
    for measure, values in columns.items():
        for row, value in zip(rows.values(), values, strict=True):
            row[measure] = value
    measures = {measure: MEASURES.get(measure, "log p (set)") for measure in columns}
    title = f"On {found['n_documents']:,} documents, each measure by the rule made for it, held out"
    caption = (
        "Held out: on each fifth of the documents, with the weights and thresholds fitted on the "
        "others; log p (set) is with the weights fitted on all."
    )
    show_measures(title, rows, measures, caption)


def labels_text(labels: Sequence[str]) -> str:
    """Write a label set for a reader; a label with a comma is quoted."""
    names = [f'"{label}"' if "," in label else label for label in labels]
    return "{" + ", ".join(names) + "}" if labels else "{} (no labels)"
