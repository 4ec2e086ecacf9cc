"""`setrnn train`: train a system."""

from __future__ import annotations

from typing import Annotated

import setrnn
from setrnn.cli.options import Data, ModelOut, TrainingOptions, TreeReading, option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import measures_table, members_table
from setrnn.cli.terminal import note, quiet, stdout


def train(
    data: Data,
    out: ModelOut,
    reading: TreeReading,
    training: TrainingOptions,
    method: Annotated[
        str | None,
        option(
            "The system to train; `setrnn methods` lists them.",
            default="the best model within the budget",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        option(
            "Without --method, the networks to train at a time on a CPU.",
            "N",
            min=1,
            default="one per core, at most 4",
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
        terminal_progress() as on_progress,
    ):
        tagger = setrnn.train(
            reading.source(data),
            method,
            jobs=jobs or min(n_cores(), MOST_JOBS),
            out=out,
            on_progress=on_progress,
            **training.arguments(),
        )
    if not ranks.is_first:
        return
    note(f"Wrote {out}")
    if "automatic" in tagger.notes:
        if "mixture" in tagger.notes:
            stdout.print(members_table(tagger.notes["mixture"]))
        for line in summarise(tagger):
            note(line)
    elif valid := tagger.notes.get("valid"):
        title = f"On the valid part, by rule {valid['rule']}"
        stdout.print(measures_table(title, {tagger.method: valid}))
