"""`setrnn calibrate`: calibrate probabilities, and find which predictions to accept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import setrnn
from setrnn.cli import options
from setrnn.cli.options import argument, new_file, option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import show_table
from setrnn.cli.terminal import note, show, write_json
from setrnn.data.disk import check_folder_place, whole_file
from setrnn.errors import ConfigError
from setrnn.models.hub import name_place, require_folder

if TYPE_CHECKING:
    from setrnn.tagging.trust.acceptance import Acceptance
    from setrnn.tagging.trust.calibrate import Calibrated

FIGURES = (".svg", ".png", ".pdf")


def calibrate(
    model: options.Model,
    data: Annotated[
        list[str],
        argument("VALID", "Documents with labels that the model was not trained on."),
    ],
    reading: options.Reading,
    target_accuracy: Annotated[float, option("The least accuracy of accepted predictions.")] = 0.9,
    confidence: Annotated[float, option("The confidence in that accuracy.")] = 0.9,
    target_recall: Annotated[
        float | None,
        option(
            "The least mean share of a document's true labels among those that are shown beside "
            "each prediction, such as 0.95.",
            default="as before, or none are shown",
        ),
    ] = None,
    rule: options.Rule = None,
    split: options.ValidPart = None,
    figure: Annotated[
        Path | None, new_file("Also draw a reliability diagram: a .svg, .png or .pdf file.")
    ] = None,
    details: Annotated[
        bool, option("Also show how often sets of each probability are right, and the errors.")
    ] = False,
    json: options.JsonFile = None,
    device: options.Device = "auto",
    allow_training_documents: options.AllowTrainingDocuments = False,
) -> None:
    """Calibrate a model's probabilities, and find which predictions to accept without review.

    The calibration is added to MODEL, whose weights stay as they are: predict then writes
    calibrated probabilities and marks each row as accepted or not. Documents that the model was
    trained on are refused.
    """
    require_folder(model, "calibrate")
    check_folder_place(Path(model))
    if figure is not None and figure.suffix not in FIGURES:
        raise ConfigError(f"--figure must end in {', '.join(FIGURES)}, got {figure.name}.")
    tagger = setrnn.load(model, device)
    with terminal_progress() as on_progress:
        found = setrnn.calibrate(
            tagger,
            reading.source(data, model=model),
            rule,
            target_accuracy,
            confidence,
            target_recall=target_recall,
            split=split,
            allow_training_documents=allow_training_documents,
            on_progress=on_progress,
        )
    found.tagger.save_calibration(model)
    _show(found, details)
    if figure is not None:
        with whole_file(figure) as stream:
            setrnn.draw_reliability(found.before, found.after, stream, figure.suffix[1:])
        note(f"Wrote {figure}")
    if json is not None:
        write_json(json, {"model": name_place(model), "method": tagger.method, **found.as_dict()})
    note(f"Updated {model}")


def _show(found: Calibrated, has_details: bool) -> None:
    """Print what is accepted, and with details how reliable the probabilities are."""
    after, labels = found.after, found.calibration.label_acceptance
    assert labels is not None
    show(
        f"{found.tagger.method}, rule {found.rule}, {found.calibration.n_documents:,} documents: "
        f"{found.accuracy:.3f} of the predicted sets are right."
    )
    asked, rows = found.acceptance.target, []
    for each in found.shares:
        target = f"{each.target:g}{'*' * (each.target == asked)}"
        rows.append([target, f"{each.sets:.1%}", f"{each.labels:.1%}"])
    show_table(
        f"What can be accepted without review, with confidence {found.acceptance.confidence:g}",
        ["target accuracy", "of the sets", "of the labels"],
        rows,
        "Labels: those that are more probable than not; those too rare for a test of their own are "
        "tested together. * is what the model accepts from now on.",
    )
    show(
        f"{describe_acceptance(found.acceptance)}\n"
        f"Labels accepted one by one: {labels.n_safe:,} of {len(found.tagger.labels):,}; evaluate "
        "lists the probability from which on each is."
    )
    for what in found.kept:
        note(
            f"The probabilities of {what} stay as they were: a curve fitted on four fifths of "
            "these documents is worse on the others."
        )
    if (shown := found.calibration.shown) is not None:
        share = f"{shown.recall:.3f} of the true labels, for a target of {shown.target:g}"
        if shown.threshold is None:
            show(f"No labels are shown: all of the model's have {share}. Lower --target-recall.")
        else:
            show(f"Shown beside each prediction: {shown.n_labels:.1f} labels, which have {share}.")
    if not has_details:
        return
    columns = (after.n_documents, after.mean_probability, after.accuracy)
    bins = ([f"{n:,}", f"{p:.3f}", f"{right:.3f}"] for n, p, right in zip(*columns, strict=True))
    title = "Predicted sets by their calibrated probability"
    show_table(title, ["documents", "probability", "accuracy"], bins)
    show(
        f"Expected calibration error: {found.before.error:.3f} before, {after.error:.3f} after "
        "(measured on each fifth of the documents, calibrated on the others).\n"
        f"Labels: {found.labels_before.error:.3f} before, {found.labels_after.error:.3f} after."
    )


def describe_acceptance(acceptance: Acceptance) -> str:
    """Describe which predictions are accepted, and how many of them are right."""
    target, confidence = f"{acceptance.target:g}", f"{acceptance.confidence:g}"
    if acceptance.threshold is None:
        return (
            f"No prediction is accepted: of the most probable ones, {acceptance.accuracy:.3f} are "
            f"right at best, which does not show {target} with confidence {confidence}. Lower "
            "--target-accuracy, or calibrate on more documents."
        )
    return (
        f"Predictions of probability {acceptance.threshold:.3f} or more are accepted, for an "
        f"accuracy of {target} with confidence {confidence}: {acceptance.n_accepted:,} documents "
        f"({acceptance.share:.1%}), of which {acceptance.accuracy:.3f} are right."
    )
