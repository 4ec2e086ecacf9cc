"""`setrnn compare`: many systems on the same data, side by side."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import setrnn
from setrnn.cli import options
from setrnn.cli.options import option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.report import show_report
from setrnn.cli.terminal import note


def compare(
    data: options.Data,
    out: Annotated[Path, option("The folder to write; a comparison already there is continued.")],
    reading: options.TreeReading,
    methods: Annotated[
        str,
        option(
            "The systems, which `setrnn methods` lists; mixture mixes the others. all leaves out "
            "those of later papers, for which later stands.",
            "all|later|A,B,C",
        ),
    ] = "all",
    seeds: Annotated[
        int | None,
        option(
            "Runs per network, with seeds 0 to N-1.", "N", min=1, default="3, or 1 with --quick"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        option(
            "How many runs to make at once.",
            "N",
            min=1,
            default="1, or 2 with --quick on two cores, or what the cluster has room for",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        option("The longest training time of one run.", "MINUTES", default="no limit"),
    ] = None,
    add: Annotated[
        list[str] | None, option("Predictions of another tool. May be repeated.", "NAME=FILE")
    ] = None,
    quick: Annotated[bool, option("Use small settings and one seed, for a first look.")] = False,
    valid: options.Valid = None,
    preset: options.Preset = "default",
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    device: options.Device = "auto",
    ray: Annotated[
        str | None,
        option(
            "Run on a Ray cluster: auto for the one of this machine, local to start one, or "
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
        built = setrnn.build_report(result.folder, on_progress=on_progress)
    show_report(built)
