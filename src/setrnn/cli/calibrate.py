"""`setrnn calibrate`: calibrate probabilities, and find which predictions to accept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

import setrnn
from setrnn.cli.options import (
    AllowTrainingDocuments,
    Device,
    JsonFile,
    Model,
    Reading,
    Rule,
    argument,
    option,
)
from setrnn.cli.progress import load_model, terminal_progress
from setrnn.cli.tables import reliability_table
from setrnn.cli.terminal import note, show, stdout, write_json
from setrnn.data.disk import check_file_place, whole_file
from setrnn.errors import ConfigError, ModelError, list_some, printable
from setrnn.models.hub import name_place, require_folder
from setrnn.tagging.trust.acceptance import MIN_SHOWN, Acceptance, accuracy_interval

if TYPE_CHECKING:
    from setrnn.tagging.trust.calibrate import Calibrated

N_LABELS_SHOWN = 5
FIGURES = (".svg", ".png", ".pdf")


def calibrate(
    model: Model,
    data: Annotated[
        list[str],
        argument("VALID", "Documents with labels that the model was not trained on."),
    ],
    reading: Reading,
    target_accuracy: Annotated[
        float, option("The least accuracy of the accepted predictions.")
    ] = 0.9,
    confidence: Annotated[
        float, option("The confidence that the accepted predictions reach that accuracy.")
    ] = 0.9,
    rule: Rule = None,
    split: Annotated[
        str | None, option("The part of VALID to read.", default="valid, or the only one")
    ] = None,
    figure: Annotated[
        Path | None, option("Also draw a reliability diagram: a .svg, .png or .pdf file.")
    ] = None,
    json: JsonFile = None,
    device: Device = "auto",
    allow_training_documents: AllowTrainingDocuments = False,
) -> None:
    """Calibrate a model's probabilities, and find which predictions to accept without review.

    The calibration is added to MODEL, whose weights stay as they are: predict then writes
    calibrated probabilities and marks each row as accepted or not. Documents that the model was
    trained on are refused.
    """
    _check_places(model, figure, json)
    tagger = load_model(model, device)
    with terminal_progress() as on_progress:
        found = setrnn.calibrate(
            tagger,
            reading.source(data),
            rule,
            target_accuracy,
            confidence,
            split=split,
            allow_training_documents=allow_training_documents,
            on_progress=on_progress,
        )
    found.tagger.save_calibration(model)
    _show(found)
    if figure is not None:
        with whole_file(figure) as file:
            setrnn.draw_reliability(found.before, found.after, file, figure.suffix[1:])
        note(f"Wrote {figure}")
    if json is not None:
        write_json(json, {"model": name_place(model), "method": tagger.method, **found.as_dict()})
    note(f"Updated {model}")


def _check_places(model: Path, figure: Path | None, json: Path | None) -> None:
    """Raise if a file or the model cannot be written, before the work starts."""
    require_folder(model, "calibrate")
    for file in (figure, json):
        if file is not None:
            check_file_place(file)
    if figure is not None and figure.suffix not in FIGURES:
        raise ConfigError(f"--figure must end in {', '.join(FIGURES)}, got {figure.name}.")
    if model.is_dir() and not os.access(model, os.W_OK):
        raise ModelError(
            f"{model} cannot be updated: it is not writable. Copy the model and calibrate the copy."
        )


def _show(found: Calibrated) -> None:
    """Print the reliability before and after, and what is accepted."""
    show(
        f"{found.tagger.method}, rule {found.rule}, {found.calibration.n_documents:,} documents: "
        f"{found.accuracy:.3f} of the predicted sets are right.\n"
        f"Expected calibration error: {found.before.error:.3f} before, {found.after.error:.3f} "
        "after (on each fifth of the documents, calibrated on the others)."
    )
    stdout.print(reliability_table("Before calibration", found.before))
    stdout.print(reliability_table("After calibration", found.after))
    show(
        f"{acceptance_note(found.acceptance)}\n"
        f"Labels: expected calibration error {found.labels_before.error:.3f} before, "
        f"{found.labels_after.error:.3f} after, over probabilities above {MIN_SHOWN}.\n"
        f"{_describe_labels(found)}"
    )


def _describe_labels(found: Calibrated) -> str:
    """Describe which labels are accepted by themselves."""
    names, acceptance = found.tagger.labels.names, found.calibration.label_acceptance
    assert acceptance is not None
    asked = f"{acceptance.target:g}", f"{acceptance.confidence:g}"
    safe = np.flatnonzero(acceptance.thresholds <= 1)  # in descending order of frequency
    if not len(safe):
        return (
            f"No label is right in {asked[0]} of cases with confidence {asked[1]}. Lower "
            "--target-accuracy, or calibrate on more documents."
        )
    each_from = [
        f"{printable(names[label])} from {acceptance.thresholds[label]:.3f}" for label in safe
    ]
    return (
        f"Accept {len(safe):,} of {len(names):,} labels by themselves, each for an accuracy of "
        f"{asked[0]} with confidence {asked[1]}: {list_some(each_from, N_LABELS_SHOWN)}. Review "
        "the others."
    )


def acceptance_note(acceptance: Acceptance) -> str:
    """Describe which predictions are accepted, and how many of them are right."""
    target, confidence = f"{acceptance.target:g}", f"{acceptance.confidence:g}"
    if acceptance.threshold is None:
        return (
            f"No prediction is accepted: the accuracy is {acceptance.accuracy:.3f} at best, and "
            f"its lower bound with confidence {confidence} is below {target}. Lower "
            "--target-accuracy, or calibrate on more documents."
        )
    n_right = round(acceptance.accuracy * acceptance.n_accepted)
    low, high = accuracy_interval(n_right, acceptance.n_accepted)
    return (
        f"Accept predictions of probability {acceptance.threshold:.3f} or more, for an accuracy of "
        f"{target} with confidence {confidence}: {acceptance.n_accepted:,} documents pass "
        f"({acceptance.share:.1%}), and {acceptance.accuracy:.3f} of them are right (95% interval "
        f"{low:.3f} to {high:.3f})."
    )
