"""`setrnn distil`: train a student on the set probabilities of a teacher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

import setrnn
from setrnn.cli.console import note, stdout
from setrnn.cli.options import (
    ConfigFile,
    Data,
    Device,
    Preset,
    Reading,
    SetOption,
    Unlabelled,
    Valid,
    with_reading,
)
from setrnn.cli.progress import terminal_progress
from setrnn.metrics import LOWER_IS_BETTER, MEASURES

if TYPE_CHECKING:
    from setrnn.data.cache import Source
    from setrnn.tagging.evaluation import Evaluation
    from setrnn.tagging.tagger import Tagger


@with_reading
def distil(
    teacher: Annotated[
        Path,
        typer.Argument(
            metavar="TEACHER", help="A model folder, such as that of a mixture.", show_default=False
        ),
    ],
    data: Data,
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    reading: Reading,
    unlabelled: Unlabelled = None,
    method: Annotated[
        str,
        typer.Option(metavar="set-rnn-exact|set-rnn|sigmoid", help="The student to train."),
    ] = "set-rnn-exact",
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
    """Train a small network on the set probabilities of a trained model, its teacher.

    The student learns from the train part of DATA and from texts without labels. The teacher may
    be of any kind and have another tokenizer. The student has the labels of DATA. Checkpoints, and
    what the teacher says about each text, are kept in OUT.run.
    """
    source = reading.source(data, valid)
    with terminal_progress() as show:
        student = setrnn.distil(
            teacher,
            source,
            method,
            out=out,
            unlabelled=unlabelled or (),
            preset=preset,
            config=config,
            settings=settings or [],
            device=device,
            seed=seed,
            resume=resume,
            on_progress=show,
        )
    note(f"Wrote {out}")
    prepared = setrnn.prepare(
        replace(source, unlabelled=tuple(unlabelled or ())),
        preset=preset,
        config=config,
        settings=settings or [],
    )
    if prepared.description["n_documents"].get("valid"):
        models = {"teacher": setrnn.load(teacher, device), "student": student}
        stdout.print(_scores_table({name: _measure(each, source) for name, each in models.items()}))


def _measure(tagger: Tagger, source: Source) -> dict[str, Evaluation]:
    """Measure a model on the valid part, each measure by its own rule."""
    from setrnn.systems.rules import RULES
    from setrnn.tagging.documents import open_documents
    from setrnn.tagging.evaluation import measure_rules

    rules = [rule for rule in tagger.rules if RULES[rule].measure]
    results = measure_rules(tagger, open_documents(source, "valid").batches(tagger), rules)
    return {str(RULES[rule].measure): each.evaluation for rule, each in results.items()}


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
