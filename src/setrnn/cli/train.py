"""`setrnn train`: train a system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import setrnn
from setrnn.cli import options
from setrnn.cli.options import option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import show_measures, show_members
from setrnn.cli.terminal import note, quiet

if TYPE_CHECKING:
    from setrnn import Tagger


def train(
    data: options.Data,
    out: options.ModelOut,
    reading: options.TreeReading,
    training: options.TrainingOptions,
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
            "How many networks to train at once on a CPU, without --method.",
            "N",
            min=1,
            default="one per core, at most 4",
        ),
    ] = None,
) -> None:
    """Train a model and write its folder: the best one within a time budget, or one system.

    Without --method, this trains classical systems, then the networks that the time allows, and
    mixes them with weights chosen on the valid part. A table shows what each gives there.

    If DATA has no valid part, a tenth of train is set aside for it, or up to a quarter if there are
    few documents. Checkpoints, logs and members are in OUT.run until the model is written.

    Several GPUs train one network by torchrun --nproc-per-node N -m setrnn train DATA --method NAME
    --out MODEL.
    """
    from setrnn.tagging.learn.member_candidates import count_jobs
    from setrnn.training.ranks import connected  # they load torch, which the help does not need

    options.refuse_replacing(out, training.may_replace(out))
    with (
        connected(training.device) as ranks,
        quiet(not ranks.is_first),
        terminal_progress() as on_progress,
    ):
        tagger = setrnn.train(
            reading.source(data),
            method,
            jobs=jobs or count_jobs(),
            out=out,
            on_progress=on_progress,
            **training.arguments(),
        )
    if ranks.is_first:
        note(f"Wrote {out}")
        show_training(tagger)


def show_training(tagger: Tagger) -> None:
    """Print what a trained model gives on the valid part."""
    from setrnn.models.card import summarise  # it loads torch, which the help does not need

    if "mixture" in tagger.notes:
        show_members(tagger.notes["mixture"])
    if "automatic" in tagger.notes:
        for line in summarise(tagger):
            note(line)
    elif valid := tagger.notes.get("valid"):
        title = f"On the valid part, by rule {valid['rule']}"
        show_measures(title, {tagger.method: valid})
