"""`setrnn train`: train a system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import setrnn
from setrnn.cli.console import note, quiet, scores_table, stdout
from setrnn.cli.mix import scores_of_members
from setrnn.cli.options import Data, TrainingOptions, TreeReading, with_training
from setrnn.cli.progress import terminal_progress


@with_training
def train(
    data: Data,
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    reading: TreeReading,
    training: TrainingOptions,
    method: Annotated[
        str | None,
        typer.Option(
            help="The system to train; `setrnn methods` lists them.",
            show_default="the best model within the budget",
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
) -> None:
    """Train a model and write its folder: the best one within a time budget, or one system.

    Without --method, this trains classical systems, then the networks that fit the time, and mixes
    them with weights chosen on the valid part. The table shows what each gives there. If DATA has
    no valid part, a tenth of train is set aside for it, up to a quarter of few documents.
    Checkpoints, logs and members are kept in OUT.run. Several GPUs train one network: torchrun
    --nproc-per-node N -m setrnn train DATA --method NAME --out MODEL.
    """
    from setrnn.model.devices import n_cores  # they load torch, which the help does not need
    from setrnn.models.card import summarise
    from setrnn.tagging.learn.member_candidates import MOST_JOBS
    from setrnn.training.ranks import connected

    with (
        connected(training.device) as ranks,
        quiet(not ranks.is_first),
        terminal_progress() as show,
    ):
        tagger = setrnn.train(
            reading.source(data),
            method,
            jobs=jobs or min(n_cores(), MOST_JOBS),
            out=out,
            on_progress=show,
            **training.arguments(),
        )
    if not ranks.is_first:
        return
    note(f"Wrote {out}")
    if "automatic" in tagger.notes:
        if "mixture" in tagger.notes:
            stdout.print(scores_of_members(tagger.notes["mixture"]))
        for line in summarise(tagger):
            note(line)
    elif valid := tagger.notes.get("valid"):
        title = f"On the valid part, by rule {valid['rule']}"
        stdout.print(scores_table(title, {tagger.method: valid}))
