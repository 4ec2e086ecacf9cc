"""`setrnn report`: make the report of a comparison again from its records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

import setrnn
from setrnn.cli.options import argument, option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import show_table
from setrnn.cli.terminal import note, show, stdout, warn

if TYPE_CHECKING:
    from setrnn.report.build import Report
    from setrnn.report.table import Table


def report(
    folder: Annotated[Path, argument("DIR", "The folder of a comparison.")],
    out: Annotated[Path | None, option("The folder to write, instead of DIR/report.")] = None,
) -> None:
    """Make the report of a comparison again from its records: one page, tables and figures."""
    with terminal_progress() as on_progress:
        built = setrnn.build_report(folder, out, on_progress)
    show_report(built)


def show_report(built: Report) -> None:
    """Print the main table of a report, which system to use, and where the page is."""
    if built.systems is not None:
        _show_systems(built.systems)
    stdout.print(Text(f"\n{built.answer[0]}", "bold"))
    show(" ".join(built.answer[1:]))
    for each in built.caveats:
        warn(each)
    note(f"Wrote {built.page}, its tables, figures and summary.json")


def _show_systems(found: Table) -> None:
    """Print the systems, the best first, without deviations over seeds."""
    styles = {"best": "bold", "tied": "underline"}
    legend = " Bold: the best. Underlined: may be the best." if stdout.is_terminal else ""
    show_table(
        found.title,
        [
            re.sub(r" |(?<=-)(?=F)", "\n", column.header.partition(" (")[0])
            for column in found.values
        ],
        (
            [Text(cell.text.partition(" ± ")[0], styles.get(cell.mark, "")) for cell in row]
            for row in found.cells
        ),
        f"Each measure by the rule made for it.{legend}",
    )
