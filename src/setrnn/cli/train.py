"""`setrnn train`: train a system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import setrnn
from setrnn.cli.console import note, scores_table, stdout
from setrnn.cli.options import (
    ConfigFile,
    Data,
    Device,
    Preset,
    Reading,
    SetOption,
    Valid,
    with_reading,
)
from setrnn.cli.progress import terminal_progress


@with_reading
def train(
    data: Data,
    method: Annotated[str, typer.Option(help="The system to train; `setrnn methods` lists them.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    reading: Reading,
    valid: Valid = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    settings: SetOption = None,
    device: Device = "auto",
    seed: Annotated[
        int | None,
        typer.Option(help="The random seed, 0 by default; the same seed gives the same model."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in OUT.run from its last checkpoint.")
    ] = False,
) -> None:
    """Train a system and write its model folder.

    A network also keeps its checkpoints and logs in OUT.run.
    """
    source = reading.source(data, valid)
    with terminal_progress() as show:
        tagger = setrnn.train(
            source,
            method,
            out=out,
            preset=preset,
            config=config,
            settings=settings or [],
            device=device,
            seed=seed,
            resume=resume,
            on_progress=show,
        )
    note(f"Wrote {out}")
    prepared = setrnn.prepare(source, preset=preset, config=config, settings=settings or [])
    if prepared.description["n_documents"].get("valid"):
        evaluation = setrnn.evaluate(tagger, prepared, split="valid")
        stdout.print(scores_table("On the valid part", {method: evaluation.as_dict()}))
