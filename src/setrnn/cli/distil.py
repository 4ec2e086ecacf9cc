"""`setrnn distil`: train a student on the set probabilities of a teacher."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import setrnn
from setrnn.cli.options import (
    Data,
    ModelOut,
    TrainingOptions,
    TreeReading,
    Unlabelled,
    argument,
    option,
)
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import student_table
from setrnn.cli.terminal import note, stdout


def distil(
    teacher: Annotated[
        Path, argument("TEACHER", "A model, such as a mixture: a folder or hub:NAME.")
    ],
    data: Data,
    out: ModelOut,
    reading: TreeReading,
    training: TrainingOptions,
    unlabelled: Unlabelled = None,
    method: Annotated[
        str, option("The student to train.", "set-rnn-exact|set-rnn|sigmoid")
    ] = "set-rnn-exact",
) -> None:
    """Train a small network on the set probabilities of a trained model, its teacher.

    The student learns from the train part of DATA and from texts without labels. The teacher may
    be of any kind and have another tokenizer. The student has the labels of DATA. If DATA has no
    valid part, it is cut from train. Checkpoints, and what the teacher says about each text, are
    kept in OUT.run.
    """
    from setrnn.systems.rules import RULES  # it loads scipy, which the help does not need
    from setrnn.tagging.learn.data import make_source

    source = reading.source(data)
    with terminal_progress() as on_progress:
        student = setrnn.distil(
            teacher,
            source,
            method,
            out=out,
            unlabelled=unlabelled or (),
            on_progress=on_progress,
            **training.arguments(),
        )
    note(f"Wrote {out}")
    if "valid" not in student.notes:
        return
    valid = setrnn.open_documents(make_source(source, training.valid, cut_valid=True), "valid")
    rows: dict[str, dict[str, float]] = {"teacher": {}, "student": {}}
    models = (setrnn.load(teacher, training.device), student)
    for row, model in zip(rows.values(), models, strict=True):
        rules = [rule for rule in model.rules if RULES[rule].measure]
        found = setrnn.evaluate_rules(model, valid, rules, allow_training_documents=True)
        for rule, each in found.items():
            measure = str(RULES[rule].measure)
            row[measure] = getattr(each.scores, measure)
            row.setdefault("documents_per_second", each.documents_per_second)
    stdout.print(student_table(rows))
