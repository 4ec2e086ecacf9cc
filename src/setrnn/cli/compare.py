"""`setrnn compare`: many systems on the same data, side by side."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import setrnn
from setrnn.cli.options import (
    ConfigFile,
    Data,
    Device,
    Preset,
    Settings,
    TreeReading,
    Valid,
    option,
)
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import hierarchical_table, measures_table
from setrnn.cli.terminal import note, show, stdout, warn
from setrnn.data.hierarchy import HIERARCHICAL_MEASURES

if TYPE_CHECKING:
    from setrnn import ComparisonResult


def compare(
    data: Data,
    out: Annotated[
        Path, option("The folder of the comparison; a comparison already there is continued.")
    ],
    reading: TreeReading,
    methods: Annotated[
        str,
        option(
            "The systems; `setrnn methods` lists them, and mixture mixes the others. later stands "
            "for those of later papers, which are not in all.",
            "all|later|A,B,C",
        ),
    ] = "all",
    seeds: Annotated[
        int | None,
        option("Runs per network, with seeds 0 to N-1; 3 by default, 1 with --quick.", "N", min=1),
    ] = None,
    jobs: Annotated[
        int | None,
        option(
            "Runs at a time; 1 by default, 2 with --quick on two cores, as many as there is room "
            "for with --ray.",
            "N",
            min=1,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        option("The longest training time of one run.", "MINUTES", default="no limit"),
    ] = None,
    add: Annotated[
        list[str] | None, option("Another tool's predictions; may be repeated.", "NAME=FILE")
    ] = None,
    quick: Annotated[
        bool, option("Small settings and one seed, for a first look.", None, "--quick")
    ] = False,
    valid: Valid = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    settings: Settings = None,
    device: Device = "auto",
    ray: Annotated[
        str | None,
        option(
            "Run on a Ray cluster: auto for that of this machine, local to start one, or "
            "HOST:PORT. All nodes must see OUT.",
            "ADDRESS",
        ),
    ] = None,
    gpus_per_run: Annotated[
        float, option("The GPUs of each run on a Ray cluster, such as 0.25.", "N", min=0)
    ] = 0.0,
) -> None:
    """Train systems on the same data, measure them by every rule, and write a report.

    Each run leaves a record in OUT as soon as it ends. A stopped comparison continues when the
    same command is given again.
    """
    from setrnn.comparison.added import parse_additions  # it loads torch: the help needs none

    with terminal_progress() as on_progress:
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
            ray=ray,
            gpus_per_run=gpus_per_run,
            command=shlex.join(["setrnn", *sys.argv[1:]]),  # without the path of the program
            on_progress=on_progress,
        )
    note("Making the report")
    with terminal_progress() as on_progress:
        report = setrnn.build_report(result.folder, on_progress=on_progress)
    _show_results(result)
    show(" ".join(report.answer))
    note(f"Wrote {out}: the page is {report.page}")


def _show_results(result: ComparisonResult) -> None:
    """Print a table of all systems, each by its own rule, and the runs that failed."""
    rows = result.mean_scores()
    kind = " (synthetic)" if result.comparison.synthetic else ""
    stdout.print()
    if rows:
        title = f"Results on the test part of {result.comparison.data}{kind}"
        stdout.print(measures_table(title, rows))
        if all(key in row for row in rows.values() for key in HIERARCHICAL_MEASURES):
            stdout.print(hierarchical_table(rows))
    for name, failure in result.failures.items():
        warn(f"{name} failed: {failure.message}")
