"""`setrnn distil`: train a student on the set probabilities of a teacher."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

import setrnn
from setrnn.cli.console import note, stdout
from setrnn.cli.options import (
    Data,
    TrainingOptions,
    TreeReading,
    Unlabelled,
    with_training,
)
from setrnn.cli.progress import terminal_progress
from setrnn.metrics import LOWER_IS_BETTER, MEASURES

if TYPE_CHECKING:
    from setrnn.tagging.evaluate import Evaluation


@with_training
def distil(
    teacher: Annotated[
        Path,
        typer.Argument(
            metavar="TEACHER",
            help="A model, such as a mixture: a folder or hub:NAME.",
            show_default=False,
        ),
    ],
    data: Data,
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    reading: TreeReading,
    training: TrainingOptions,
    unlabelled: Unlabelled = None,
    method: Annotated[
        str,
        typer.Option(metavar="set-rnn-exact|set-rnn|sigmoid", help="The student to train."),
    ] = "set-rnn-exact",
) -> None:
    """Train a small network on the set probabilities of a trained model, its teacher.

    The student learns from the train part of DATA and from texts without labels. The teacher may
    be of any kind and have another tokenizer. The student has the labels of DATA. If DATA has no
    valid part, it is cut from train. Checkpoints, and what the teacher says about each text, are
    kept in OUT.run.
    """
    from setrnn.systems.rules import RULES  # it loads scipy, which the help does not need
    from setrnn.tagging.learn.data import make_training_source

    source = reading.source(data)
    with terminal_progress() as show:
        student = setrnn.distil(
            teacher,
            source,
            method,
            out=out,
            unlabelled=unlabelled or (),
            on_progress=show,
            **training.arguments(),
        )
    note(f"Wrote {out}")
    if "valid" not in student.notes:
        return
    valid = setrnn.open_documents(make_training_source(source, training.valid), "valid")
    found = {}
    for name, model in (("teacher", setrnn.load(teacher, training.device)), ("student", student)):
        rules = {rule: RULES[rule].measure for rule in model.rules if RULES[rule].measure}
        results = setrnn.evaluate_rules(model, valid, [*rules], allow_training_documents=True)
        found[name] = {str(rules[rule]): each for rule, each in results.items()}
    stdout.print(_scores_table(found))


def _scores_table(found: Mapping[str, Mapping[str, Evaluation]]) -> Table:
    """Show the measures and the speed of the teacher and the student."""
    table = Table(title="On the valid part, each measure by its own rule", title_justify="left")
    table.add_column("")
    measures = [each for each in MEASURES if all(each in of_model for of_model in found.values())]
    for measure in measures:
        table.add_column(MEASURES[measure].replace("-", " ").replace(" ", "\n"), justify="right")
    table.add_column("documents\nper second", justify="right")
    for name, of_model in found.items():
        cells = [
            f"{getattr(of_model[each].scores, each):.{4 if each in LOWER_IS_BETTER else 3}f}"
            for each in measures
        ]
        speed = of_model[measures[0]].documents_per_second
        table.add_row(name, *cells, f"{speed:,.0f}")
    return table
