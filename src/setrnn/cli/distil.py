"""`setrnn distil`: train a student on the set probabilities of a teacher."""

from __future__ import annotations

from typing import Annotated

import setrnn
from setrnn.cli import options
from setrnn.cli.options import argument, option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.terminal import note
from setrnn.cli.train import show_training


def distil(
    teacher: Annotated[str, argument("TEACHER", "A model folder or hub:NAME.")],
    data: options.Data,
    out: options.ModelOut,
    reading: options.TreeReading,
    training: options.StudentOptions,
    unlabelled: options.Unlabelled = None,
    method: Annotated[
        str, option("The student to train.", "set-rnn-exact|set-rnn|sigmoid")
    ] = "set-rnn-exact",
) -> None:
    """Train a small network on the set probabilities of a trained model, its teacher.

    The network is called the student. It learns from the train part of DATA and from texts without
    labels, and has the labels of DATA. The teacher may be of any kind and have another tokenizer.
    If DATA has no valid part, it is cut from train. Checkpoints, and what the teacher says about
    each text, are in OUT.run until the model is written.
    """
    options.refuse_replacing(out, training.may_replace(out), [teacher])
    with terminal_progress() as on_progress:
        student = setrnn.distil(
            teacher,
            reading.source(data, model=teacher),
            method,
            out=out,
            unlabelled=unlabelled or (),
            on_progress=on_progress,
            **training.arguments(),
        )
    note(f"Wrote {out}")
    show_training(student)
