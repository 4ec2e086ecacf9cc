"""`setrnn compare`: many systems on the same data, side by side."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import setrnn
from setrnn.cli.console import hierarchical_table, note, scores_table, stdout, warn
from setrnn.cli.options import (
    ConfigFile,
    Data,
    Device,
    Preset,
    SetOption,
    TreeReading,
    Valid,
    with_reading,
)
from setrnn.cli.progress import terminal_progress
from setrnn.comparison.added import parse_additions
from setrnn.data.hierarchy import HIERARCHICAL_MEASURES

if TYPE_CHECKING:
    from setrnn import ComparisonResult


@with_reading
def compare(
    data: Data,
    out: Annotated[
        Path,
        typer.Option(help="The folder of the comparison; a comparison already there is continued."),
    ],
    reading: TreeReading,
    methods: Annotated[
        str,
        typer.Option(
            metavar="all|later|A,B,C",
            help="The systems; `setrnn methods` lists them, and mixture mixes the others. later "
            "stands for those of later papers, which are not in all.",
        ),
    ] = "all",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Runs per network, with seeds 0 to N-1; 3 by default, 1 with --quick.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Runs at a time; 1 by default, 2 with --quick on two cores, as many as there is "
            "room for with --ray.",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            help="The longest training time of one run.",
            show_default="no limit",
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Another tool's predictions; may be repeated.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small settings and one seed, for a first look.")
    ] = False,
    valid: Valid = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    settings: SetOption = None,
    device: Device = "auto",
    no_models: Annotated[
        bool, typer.Option("--no-models", help="Do not keep the trained models.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a Ray cluster: auto for that of this machine, local to start one, or "
            "HOST:PORT. All nodes must see OUT.",
            show_default=False,
        ),
    ] = None,
    gpus_per_run: Annotated[
        float,
        typer.Option(
            min=0, metavar="N", help="The GPUs of each run on a Ray cluster, such as 0.25."
        ),
    ] = 0.0,
) -> None:
    """Train systems on the same data, measure them by every rule, and write a report.

    Each run leaves a record in OUT as soon as it ends. A stopped comparison continues when the
    same command is given again.
    """
    with terminal_progress() as show:
        result = setrnn.compare(
            reading.source(data, valid),
            methods,
            out=out,
            seeds=seeds,
            jobs=jobs,
            budget=budget,
            added=parse_additions(add or []),
            quick=quick,
            preset=preset,
            config=config,
            settings=settings or [],
            device=device,
            keep_models=not no_models,
            ray=ray,
            gpus_per_run=gpus_per_run,
            command=given_command(),
            on_progress=show,
        )
    page = write_report(result)
    show_results(result)
    note(f"Wrote {out}: the page is {page}")


def given_command() -> str:
    """Return the command as it was given, without the path of the program."""
    return shlex.join(["setrnn", *sys.argv[1:]])


def write_report(result: ComparisonResult) -> Path:
    """Write the report of a comparison, and return its page."""
    note("Making the report")
    with terminal_progress() as show:
        return setrnn.build_report(result.folder, on_progress=show).page


def show_results(result: ComparisonResult) -> None:
    """Print a table of all systems, each by its own rule, and the runs that failed."""
    rows = result.mean_scores()
    kind = " (synthetic)" if result.comparison.synthetic else ""
    stdout.print()
    if rows:
        title = f"Results on the test part of {result.comparison.data}{kind}"
        stdout.print(scores_table(title, rows))
        if all(key in row for row in rows.values() for key in HIERARCHICAL_MEASURES):
            stdout.print(hierarchical_table(rows))
    for name, failure in result.failures.items():
        warn(f"{name} failed: {failure.message}")
