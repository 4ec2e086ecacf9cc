"""`setrnn calibrate`: probabilities one can trust, and which predictions to accept unseen."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from setrnn.cli.console import note, stdout, warn, write_json
from setrnn.cli.data import report_skipped
from setrnn.cli.options import Device, JsonFile, Model, Reading, Rule, with_reading
from setrnn.cli.progress import documents_progress
from setrnn.data.folders import check_file_place, whole_file
from setrnn.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from setrnn.tagging.calibrating import Batches, Calibrated
    from setrnn.tagging.calibration import Acceptance
    from setrnn.tagging.calibration.reliability import Reliability
    from setrnn.tagging.evaluation import AcceptedScores, Evaluation
    from setrnn.tagging.tagger import Tagger

BAR_WIDTH = 30
FIGURES = (".svg", ".png", ".pdf")


@with_reading
def calibrate(
    model: Model,
    data: Annotated[
        str,
        typer.Argument(
            metavar="VALID", help="Documents with labels that the model was not trained on."
        ),
    ],
    reading: Reading,
    target_accuracy: Annotated[
        float, typer.Option(help="How often an accepted prediction must be right.")
    ] = 0.9,
    confidence: Annotated[
        float, typer.Option(help="How sure it must be that they are right that often.")
    ] = 0.9,
    rule: Rule = None,
    split: Annotated[
        str | None,
        typer.Option("--split", help="Which part of VALID.", show_default="valid, or the only one"),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Also draw the reliability: a .svg, .png or .pdf.", show_default=False),
    ] = None,
    json: JsonFile = None,
    device: Device = "auto",
) -> None:
    """Calibrate a model's probabilities, and find which predictions need no second look.

    The model folder is updated: predict then gives calibrated probabilities and marks each row
    as accepted or not.
    """
    from setrnn.tagging.calibrating import calibrate as fit
    from setrnn.tagging.calibration.acceptance import check_share
    from setrnn.tagging.loading import load

    check_share("target accuracy", target_accuracy)
    check_share("confidence", confidence)
    _check_places(model, figure, json)
    tagger = load(model, device)
    tagger.rule_or_own(rule)
    with _documents(tagger, reading, data, split) as batches, documents_progress() as advance:
        found = fit(
            tagger, batches, rule, target_accuracy, confidence, lambda n: advance("tagging", n)
        )
    replace(tagger, calibration=found.calibration).save(model)
    _show(found, tagger.method)
    if figure is not None:
        from setrnn.report.figures.reliability import draw_reliability

        with whole_file(figure) as file:
            draw_reliability(found.before, found.after, file, figure.suffix[1:])
        note(f"Wrote {figure}")
    if json is not None:
        write_json(json, {"model": model.name, "method": tagger.method, **found.as_dict()})
    note(f"Updated {model}")


def calibration_note(evaluation: Evaluation) -> str:
    """Say in one line how far probabilities are from how often the sets are right."""
    return (
        f"Mean probability {evaluation.mean_probability:.3f}, "
        f"expected calibration error {evaluation.calibration_error:.3f} "
        f"({evaluation.calibration_error_raw:.3f} by the model's own probabilities)."
    )


def accepted_table(accepted: AcceptedScores) -> Table:
    """Lay out how often the accepted predictions are right."""
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


def _check_places(model: Path, figure: Path | None, json: Path | None) -> None:
    """Refuse what could not be written, before the work."""
    for file in (figure, json):
        if file is not None:
            check_file_place(file)
    if figure is not None and figure.suffix not in FIGURES:
        raise ConfigError(f"--figure must end in {', '.join(FIGURES)}, got {figure.name}.")
    home = model.resolve().parent
    if model.is_dir() and not os.access(home, os.W_OK):
        raise ModelError(
            f"{model} cannot be updated: {home} is not writable. Copy the model and calibrate "
            "the copy."
        )


@contextmanager
def _documents(tagger: Tagger, reading: Reading, data: str, split: str | None) -> Iterator[Batches]:
    """Open a file, a folder or a prepared folder; report bad rows at the end."""
    from setrnn.data.formats import BadRows
    from setrnn.data.prepared import Prepared, is_prepared
    from setrnn.tagging.labelled import example_batches, prepared_batches

    if is_prepared(Path(data)):
        prepared = Prepared(Path(data))
        part = split or _default_split(prepared.splits)
        _warn_of_training_documents(data, part)
        yield prepared_batches(tagger, prepared, part)
        return
    source = reading.source(data)
    dataset = source.open()
    part = split or _default_split(list(dataset.splits))
    _warn_of_training_documents(data, part)
    bad_rows = BadRows(source.on_bad_row)
    yield example_batches(tagger, dataset.require(part).read(bad_rows))
    report_skipped(bad_rows)


def _default_split(splits: list[str]) -> str:
    return splits[0] if len(splits) == 1 else "valid"


def _warn_of_training_documents(data: str, part: str) -> None:
    if part == "train" and not Path(data).is_file():  # a lone file is called train too
        warn(
            "A model is surer of the documents it was trained on than of others: calibrate on "
            "a part that it did not see, such as valid."
        )


def _show(found: Calibrated, method: str) -> None:
    stdout.print(
        f"{method}, rule {found.rule}, {found.calibration.n_documents:,} documents: "
        f"{found.accuracy:.3f} of the predicted sets are right.",
        highlight=False,
        soft_wrap=True,
    )
    stdout.print(
        f"Expected calibration error: {found.before.error:.3f} before, {found.after.error:.3f} "
        "after (of each fifth of the documents, calibrated on the others).",
        highlight=False,
        soft_wrap=True,
    )
    stdout.print(_reliability_table("Before", found.before))
    stdout.print(_reliability_table("After", found.after))
    stdout.print(acceptance_note(found.acceptance), highlight=False, soft_wrap=True)


def _reliability_table(title: str, reliability: Reliability) -> Table:
    """Lay out how often sets are right, by their probability; the bar shows both."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("documents", "probability", "right"):
        table.add_column(column, justify="right")
    table.add_column("right, and | the probability")
    rows = zip(
        reliability.n_documents, reliability.mean_probability, reliability.accuracy, strict=True
    )
    for n, probability, accuracy in rows:
        table.add_row(
            f"{n:,}", f"{probability:.3f}", f"{accuracy:.3f}", _bar(probability, accuracy)
        )
    return table


def _bar(probability: float, accuracy: float) -> Text:
    """Draw the accuracy as a bar, and where the probability says that it ends."""
    filled = round(accuracy * BAR_WIDTH)
    mark = min(round(probability * BAR_WIDTH), BAR_WIDTH - 1)
    bar = list("█" * filled + "·" * (BAR_WIDTH - filled))
    bar[mark] = "|"
    text = Text("".join(bar))
    text.stylize("cyan", 0, filled)
    text.stylize("bold", mark, mark + 1)
    return text


def acceptance_note(acceptance: Acceptance) -> str:
    """Say which predictions are accepted, and how right they were."""
    asked = f"{acceptance.target:g} with confidence {acceptance.confidence:g}"
    if acceptance.threshold is None:
        return (
            f"No threshold reaches an accuracy of {asked}: the best is "
            f"{acceptance.accuracy:.3f}. Nothing is accepted; lower --target-accuracy."
        )
    from setrnn.tagging.calibration.acceptance import accuracy_interval

    n_right = round(acceptance.accuracy * acceptance.n_accepted)
    low, high = accuracy_interval(n_right, acceptance.n_accepted)
    return (
        f"Accept predictions of probability {acceptance.threshold:.3f} or more, for an accuracy of "
        f"{asked}: {acceptance.n_accepted:,} documents pass ({acceptance.share:.1%}), and "
        f"{acceptance.accuracy:.3f} of them are right (95% interval {low:.3f} to {high:.3f})."
    )
