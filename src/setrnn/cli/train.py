"""`setrnn train`: train a system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import setrnn
from setrnn.cli.console import note, scores_table, stdout
from setrnn.cli.mix import print_mixture
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
from setrnn.tagging.model_readme import summarise

MOST_JOBS = 4  # there are four networks to train on a CPU


@with_reading
def train(
    data: Data,
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    reading: Reading,
    method: Annotated[
        str | None,
        typer.Option(
            help="The system to train; `setrnn methods` lists them.",
            show_default="the best model within the budget",
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="instance-f1|label-f1|micro-f1|subset-accuracy|hamming-loss",
            help="What the model should be good at. It chooses the epoch, the weights of members, "
            "and the rule that predicts.",
            show_default="instance-f1",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            min=0,
            help="The time that training may take; 0 for no limit.",
            show_default="10 on a CPU without --method",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Without --method, the networks to train at a time on a CPU.",
            show_default="one per core, at most 4",
        ),
    ] = None,
    valid: Valid = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    settings: SetOption = None,
    device: Device = "auto",
    seed: Annotated[
        int | None,
        typer.Option(
            help="The random seed, 0 by default; the same seed gives the same model, if no budget "
            "shortens the training."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the run in OUT.run: from its last checkpoint, with the members there.",
        ),
    ] = False,
) -> None:
    """Train a model and write its folder: the best one within a time budget, or one system.

    Without --method, this trains classical systems, then the networks that fit the time, and mixes
    them with weights chosen on the valid part, which is cut from train if there is none. The table
    shows what each gives there. Checkpoints, logs and members are kept in OUT.run.
    """
    from setrnn.model.devices import n_cores  # loads torch, which the help does not need

    source = reading.source(data, valid)
    with terminal_progress() as show:
        tagger = setrnn.train(
            source,
            method,
            measure=measure,
            budget=budget,
            jobs=jobs or min(n_cores(), MOST_JOBS),
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
    if "automatic" in tagger.notes:
        if "mixture" in tagger.notes:
            print_mixture(tagger.notes["mixture"])
        for line in summarise(tagger):
            note(line)
        return
    prepared = setrnn.prepare(source, preset=preset, config=config, settings=settings or [])
    if prepared.description["n_documents"].get("valid"):
        evaluation = setrnn.evaluate(tagger, prepared, split="valid")
        title = f"On the valid part, by rule {evaluation.rule}"
        stdout.print(scores_table(title, {tagger.method: evaluation.as_dict()}))
