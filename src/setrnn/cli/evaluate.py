"""`setrnn evaluate`: measure a model on documents whose labels are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

import setrnn
from setrnn.cli.console import scores_table, stdout, warn, write_json
from setrnn.cli.options import (
    BeamWidth,
    Data,
    Device,
    JsonFile,
    Model,
    Reading,
    Rule,
    with_reading,
)
from setrnn.cli.predict import LimitOptions, with_limits
from setrnn.cli.progress import terminal_progress
from setrnn.data.folders import check_file_place

if TYPE_CHECKING:
    from setrnn.tagging.evaluation import AcceptedScores, Evaluation


@with_reading
@with_limits
def evaluate(
    model: Model,
    data: Data,
    reading: Reading,
    limits: LimitOptions,
    rule: Rule = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", help="The part of DATA to measure on.", show_default="test, or the only one"
        ),
    ] = None,
    json: JsonFile = None,
    device: Device = "auto",
    beam_width: BeamWidth = None,
) -> None:
    """Measure a model on documents whose labels are known."""
    if json is not None:
        check_file_place(json)
    wanted = limits.limits()
    tagger = setrnn.load(model, device)
    if beam_width is not None:
        tagger = tagger.with_beam_width(beam_width)
    tagger.rule_or_own(rule)
    tagger.known_limits(wanted)
    documents = setrnn.open_documents(reading.source(data), split)
    with terminal_progress() as show:
        evaluation = setrnn.evaluate(tagger, documents, rule, limits=wanted, on_progress=show)
    values = {
        "model": model.name,
        "method": tagger.method,
        "data": data,
        "split": documents.split,
        **evaluation.as_dict(),
    }
    where = data if Path(data).is_file() else f"{documents.split} of {data}"
    stdout.print(
        f"{tagger.method}, rule {evaluation.rule}, on {where}: "
        f"{evaluation.scores.n_documents:,} documents",
        markup=False,
        highlight=False,
        soft_wrap=True,  # a table would wrap a long path to its own width
    )
    stdout.print(scores_table("", {model.name: values}))
    stdout.print(_ranking_table(values))
    for line in (_describe_probabilities(evaluation), _describe_calibration(evaluation)):
        stdout.print(line, highlight=False, soft_wrap=True)
    if evaluation.accepted is not None:
        stdout.print(_accepted_table(evaluation.accepted))
    if evaluation.scores.n_unseen_labels:
        warn(
            f"{evaluation.scores.n_unseen_labels:,} labels that the model never saw occur "
            f"{evaluation.scores.n_unseen_label_occurrences:,} times: each counts as missed."
        )
    if json is not None:
        write_json(json, values)


def _ranking_table(values: dict[str, object]) -> Table:
    table = Table(title="Labels ranked by probability", title_justify="left")
    names = [name for name in values if name.startswith(("precision@", "ndcg@"))]
    for name in names:
        table.add_column(name.replace("ndcg", "nDCG"), justify="right")
    table.add_row(*(f"{values[name]:.3f}" for name in names))
    return table


def _describe_probabilities(evaluation: Evaluation) -> str:
    """Describe in one line how probable the true sets are, and what the search did not find."""
    found, sentences = evaluation.set_log_likelihood, []
    if found.mean is not None:
        floor = f" ({found.n_impossible_sets:,} below 1e-12)" if found.n_impossible_sets else ""
        sentences.append(f"Mean log p(true set) {found.mean:.3f}{floor}.")
    sentences.append(f"Sets not found have {evaluation.missing_mass:.1%} of the probability.")
    if evaluation.certificates is not None:
        proved, pruned = evaluation.certificates.share_proved, evaluation.certificates.pruned_mass
        sentences.append(
            f"{proved:.1%} of the predictions are proved; the search pruned {pruned:.1%} of the "
            "probability."
        )
    return " ".join(sentences)


def _describe_calibration(evaluation: Evaluation) -> str:
    """Describe in one line how far the probabilities are from the accuracy."""
    return (
        f"Mean probability of the predicted sets {evaluation.mean_probability:.3f}; expected "
        f"calibration error {evaluation.calibration_error:.3f} "
        f"({evaluation.calibration_error_raw:.3f} with the model's own probabilities)."
    )


def _accepted_table(accepted: AcceptedScores) -> Table:
    table = Table(title="Accepted predictions", title_justify="left")
    for column in ("documents", "share", "accuracy", "95% interval"):
        table.add_column(column, justify="right")
    accuracy = accepted.accuracy_accepted
    low, high = accepted.accuracy_accepted_low, accepted.accuracy_accepted_high
    table.add_row(
        f"{accepted.n_accepted:,}",
        f"{accepted.share_accepted:.1%}",
        "-" if accuracy is None else f"{accuracy:.3f}",
        "-" if accuracy is None else f"{low:.3f} to {high:.3f}",
    )
    return table
