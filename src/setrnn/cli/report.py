"""`setrnn report`: make the report of a comparison again from its records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table as TerminalTable
from rich.text import Text

import setrnn
from setrnn.cli.console import note, stdout, warn
from setrnn.cli.progress import terminal_progress

if TYPE_CHECKING:
    from setrnn.report.drift import Drift
    from setrnn.report.table import Cell, Table

WIDE = 100  # characters of a terminal that has room for the deviations over seeds


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a comparison.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write, instead of DIR/report.", show_default=False),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Another comparison; one more table puts the systems of all side by side. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A stored report of the same data, such as docs/results/debtags: say which scores "
            "differ by more than the tolerance, and which settings and versions differ. "
            "The exit code is 1 if a score has drifted.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make the report of a comparison again from its records: one page, tables and figures."""
    with terminal_progress() as show:
        built = setrnn.build_report(folder, out, beside or [], show, against=against)
    if built.systems is not None:
        stdout.print(systems_table(built.systems))
    for each in built.caveats:
        warn(each)
    note(f"Wrote {built.page}, its tables, figures and summary.json")
    if built.drift is not None:
        show_drift(built.drift)
        if built.drift.drifted:
            raise typer.Exit(1)


def show_drift(drift: Drift) -> None:
    """Print the scores that have drifted, and what differs from the stored comparison."""
    stdout.print()
    for change in drift.drifted:
        stdout.print(f"drift: {change}", markup=False, highlight=False, soft_wrap=True)
    for each in drift.settings:
        note(f"Different from the stored comparison: {each}")
    if drift.missing:
        note(f"Stored, but not run here: {', '.join(drift.missing)}")
    note(f"{len(drift.drifted)} of {len(drift.table.rows)} scores have drifted.")


def systems_table(table: Table) -> TerminalTable:
    """Lay out a table for the terminal: the best in bold, tied cells underlined."""
    shown = TerminalTable(
        title=Text(table.title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=0,
    )
    shown.add_column(Text(table.row_header), no_wrap=True)
    for header in table.headers:
        shown.add_column(Text(header.replace(" ", "\n")), justify="right")
    is_narrow = stdout.width < WIDE
    for row in table.rows:
        shown.add_row(Text(row.name), *(_cell(cell, is_narrow) for cell in row.cells))
    return shown


def _cell(cell: Cell, is_narrow: bool) -> Text:
    text = cell.text.partition(" ± ")[0] if is_narrow else cell.text
    return Text(text, "bold" if cell.is_best else "underline" if cell.is_tied else "")
