"""`setrnn report`: make the report of a comparison again from its records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import setrnn
from setrnn.cli.options import argument, option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import systems_table
from setrnn.cli.terminal import note, show, stdout, warn

if TYPE_CHECKING:
    from setrnn.report.summary import Drift

WIDE = 100  # characters of a terminal that has room for the deviations over seeds


def report(
    folder: Annotated[Path, argument("DIR", "The folder of a comparison.")],
    out: Annotated[Path | None, option("The folder to write, instead of DIR/report.")] = None,
    beside: Annotated[
        list[Path] | None,
        option(
            "Another comparison; one more table puts the systems of all side by side. "
            "May be repeated.",
            "DIR",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        option(
            "A stored report of the same data, such as docs/results/debtags: say which scores "
            "differ by more than the tolerance, and which settings and versions differ. "
            "The exit code is 1 if a score has drifted.",
            "DIR",
        ),
    ] = None,
) -> None:
    """Make the report of a comparison again from its records: one page, tables and figures."""
    with terminal_progress() as on_progress:
        built = setrnn.build_report(folder, out, beside or [], on_progress, against=against)
    if built.systems is not None:
        stdout.print(systems_table(built.systems, is_narrow=stdout.width < WIDE))
    show(" ".join(built.answer))
    for each in built.caveats:
        warn(each)
    note(f"Wrote {built.page}, its tables, figures and summary.json")
    if built.drift is not None:
        _show_drift(built.drift)
        if built.drift.drifted:
            raise typer.Exit(1)


def _show_drift(drift: Drift) -> None:
    """Print the scores that have drifted, and what differs from the stored comparison."""
    show("")
    for change in drift.drifted:
        show(f"drift: {change}")
    for each in drift.settings:
        note(f"Different from the stored comparison: {each}")
    if drift.missing:
        note(f"Stored, but not run here: {', '.join(drift.missing)}")
    note(f"{len(drift.drifted)} of {drift.n_scores} scores have drifted.")
