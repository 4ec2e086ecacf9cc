"""`setrnn compare`: many systems on one dataset, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setrnn.cli.comparing import Request, compare_systems, show_results
from setrnn.cli.console import note
from setrnn.cli.options import (
    ConfigFile,
    Data,
    Device,
    Preset,
    Reading,
    SetOption,
    with_reading,
)
from setrnn.cli.quick import MOST_JOBS, quick_overrides
from setrnn.errors import ConfigError

N_SEEDS = 3


@with_reading
def compare(
    data: Data,
    out: Annotated[Path, typer.Option(help="The folder of the comparison; gone on with.")],
    reading: Reading,
    methods: Annotated[
        str, typer.Option(metavar="all|A,B,C", help="The systems; `setrnn methods` lists them.")
    ] = "all",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Runs of each system: seeds 0 to N-1.", show_default="3"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many runs at once.", show_default="1"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", help="The most a run may train.", show_default="no limit"),
    ] = None,
    tune: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Search each system's settings on valid, N trials."),
    ] = 0,
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="Predictions of another tool; may be repeated."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small settings and one seed: a first look.")
    ] = False,
    valid: Annotated[
        Path | None, typer.Option(help="A file that becomes the valid part.", show_default=False)
    ] = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    settings: SetOption = None,
    device: Device = "auto",
    no_models: Annotated[
        bool, typer.Option("--no-models", help="Do not keep the trained models.")
    ] = False,
) -> None:
    """Train systems side by side, measure them by every rule, and make tables and a page.

    Each run leaves a record in OUT as soon as it ends: the same command goes on where it stopped.
    """
    from setrnn.comparison.added import parse_additions
    from setrnn.comparison.plan import find_methods
    from setrnn.config import load_config
    from setrnn.model.devices import n_cores

    if budget is not None and not 0 < budget < float("inf"):
        raise ConfigError(f"--budget must be above 0 minutes, got {budget:g}.")
    if quick and (preset != "default" or config is not None):
        raise ConfigError("--quick has settings of its own. Leave out --preset and --config.")
    overrides = [*(quick_overrides() if quick else []), *(settings or [])]
    request = Request(
        source=reading.source(data, valid),
        methods=find_methods(methods),
        out=out,
        config=load_config(preset, config, overrides),
        n_seeds=seeds or (1 if quick else N_SEEDS),
        n_jobs=jobs or (min(MOST_JOBS, n_cores()) if quick else 1),
        budget_minutes=budget,
        n_trials=tune,
        added=parse_additions(add or []),
        device=device,
        keep_models=not no_models,
        preset=preset,
        overrides=overrides,
    )
    compared = compare_systems(request)
    show_results(compared)
    note(f"Wrote {out}: the page is {compared.page}")
