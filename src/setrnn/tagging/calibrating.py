"""Calibrate a tagger on documents whose labels are known."""

# n documents, L labels, K candidates, S labels of the largest set

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from setrnn.data.prepared import Prepared
from setrnn.errors import SetRNNError
from setrnn.progress import Note, OnProgress, ignore_progress, show_step
from setrnn.systems.true_marginals import TrueMarginals
from setrnn.tagging.acceptance import (
    Acceptance,
    LabelAcceptance,
    Reliability,
    as_plain,
    check_share,
    reliability,
)
from setrnn.tagging.calibration import (
    LEAST_DOCUMENTS,
    Calibration,
)
from setrnn.tagging.calibration_documents import (
    CalibrationDocuments,
    LabelReliability,
    accept_label_probs,
)
from setrnn.tagging.documents import Documents, LabelledDocuments, open_documents, open_unseen
from setrnn.tagging.evaluate import check_tagger
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.targets import note_targets
from setrnn.training.failures import explain_full_gpu


@dataclass(frozen=True, repr=False)
class Calibrated:
    """A calibrated tagger, and the effect of the calibration on the predictions by one rule.

    `after` is measured on each fifth of the documents, with scalings fitted on the others.
    """

    rule: str
    tagger: Tagger
    calibration: Calibration
    acceptance: Acceptance
    before: Reliability
    after: Reliability
    accuracy: float  # of all predictions
    labels: LabelReliability

    def __repr__(self) -> str:
        return f"<Calibrated {self.tagger!r}, rule {self.rule}: {self.acceptance}>"

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "rule": self.rule,
            "n_documents": self.calibration.n_documents,
            "share_trained_on": self.calibration.share_trained_on,
            "subset_accuracy": self.accuracy,
            "calibration_error": self.after.error,
            "calibration_error_raw": self.before.error,
            "acceptance": as_plain(self.acceptance),
            "reliability": {"before": self.before.as_dict(), "after": self.after.as_dict()},
            "scalings": as_plain(self.calibration.scalings),
            "labels": {
                "calibration_error": self.labels.after.error,
                "calibration_error_raw": self.labels.before.error,
                "n_pairs": int(self.labels.after.n_documents.sum()),
                "acceptance": self._label_acceptance(),
            },
        }

    def _label_acceptance(self) -> dict[str, dict[str, Any]]:
        """Return the threshold of each label that can be accepted."""
        found = self.calibration.label_acceptance
        assert found is not None
        names = self.tagger.labels.names
        return {
            names[label]: {
                "threshold": float(found.thresholds[label]),
                "share": float(found.shares[label]),
                "is_rare": bool(found.is_rare[label]),
            }
            for label in np.flatnonzero(found.thresholds <= 1)
        }


def fit_calibration(
    tagger: Tagger,
    data: Documents,
    *,
    split: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Calibration:
    """Fit thresholds and scalings, and acceptance to the targets of the tagger's calibration."""
    found = CalibrationDocuments.collect(tagger, open_documents(data, split, "valid"), on_progress)
    with _show_fitting(on_progress):
        return _fit(found, tagger)


def _fit(found: CalibrationDocuments, tagger: Tagger) -> Calibration:
    calibration, kept = found.fit(tagger), tagger.calibration
    if kept is None:
        return calibration
    acceptance = found.accept(tagger, calibration, _list_targets(kept))[0]
    calibration = replace(calibration, acceptance=acceptance)
    if (labels := kept.label_acceptance) is None:
        return calibration
    of_labels, _ = found.accept_labels(calibration, labels.target, labels.confidence)
    return replace(calibration, label_acceptance=of_labels)


def _list_targets(calibration: Calibration | None) -> dict[str, tuple[float, float]]:
    """Return the target and the confidence of each rule that has an acceptance."""
    kept = {} if calibration is None else calibration.acceptance
    return {rule: (each.target, each.confidence) for rule, each in kept.items()}


def calibrate_on_valid(
    tagger: Tagger,
    prepared: Prepared,
    out: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Calibrate a tagger on the valid part, if there is one: see `calibrate_or_warn`."""
    if not prepared.description["n_documents"].get("valid", 0):
        note_targets(tagger, on_progress)
        return tagger
    return calibrate_or_warn(tagger, open_documents(prepared, "valid"), out, on_progress)


def calibrate_or_warn(
    tagger: Tagger,
    documents: LabelledDocuments,
    out: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Calibrate a tagger on documents, if there are enough; save the calibration in `out`.

    A calibration that fails leaves the tagger as it is: the model's own probabilities stay.

    Args:
        tagger: the model.
        documents: how many there are must be known.
        out: the model's folder; None if it is in none.
        on_progress: called with the progress and with notes for the user.
    """
    n_documents, kind = documents.n_documents or 0, "valid " * (documents.split == "valid")
    if n_documents < LEAST_DOCUMENTS:
        text = (
            f"There are {n_documents:,} {kind}documents, and {LEAST_DOCUMENTS} are needed to "
            "calibrate: probabilities are the model's own."
        )
        on_progress(Note(text))
        note_targets(tagger, on_progress)
        return tagger
    way_out = "Calibrate it on fewer documents, with setrnn calibrate."
    try:
        with explain_full_gpu("Calibrating", way_out):
            calibration = fit_calibration(tagger, documents, on_progress=on_progress)
        calibrated = replace(tagger, calibration=calibration)
        if out is not None:
            calibrated = calibrated.save_calibration(out)
    except (SetRNNError, MemoryError, RuntimeError) as error:
        is_torch = type(error) is RuntimeError
        if is_torch and "allocate" not in str(error):  # its way to say: out of memory
            raise
        reason = "" if is_torch else str(error)
        on_progress(
            Note(f"The model is not calibrated: {reason or 'out of memory.'}", is_warning=True)
        )
        note_targets(tagger, on_progress)
        return tagger
    temperature = calibration.scalings["sets"].temperature
    on_progress(
        Note(
            f"Calibrated on the {n_documents:,} {kind}documents (temperature {temperature:.2f}): "
            "predict gives calibrated probabilities, predict --raw the model's own."
        )
    )
    note_targets(calibrated, on_progress)
    return calibrated


def calibrate(
    tagger: Tagger,
    data: Documents,
    rule: str | None = None,
    target: float = 0.9,
    confidence: float = 0.9,
    *,
    split: str | None = None,
    allow_training_documents: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Calibrated:
    """Calibrate probabilities, and find which predictions to accept without review.

    The acceptance of other rules, if the model has any, is fitted again to their targets.

    Args:
        tagger: the model; it is not changed, the result has a calibrated copy.
        data: documents with labels that the model was not trained on: a file, a folder, a
            prepared folder, "newsroom", or examples; a `Source` says how to read a file.
        rule: the rule whose predictions are accepted; the model's own if not given.
        target: the least accuracy of the accepted predictions.
        confidence: the confidence that they reach the target.
        split: the part of the data; valid, or the only one, if not given.
        allow_training_documents: whether to calibrate, with a warning, on documents that the model
            was trained on; otherwise they raise DataError.
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> calibrated = setrnn.calibrate(tagger, "newsroom", target=0.8)
        >>> calibrated.after.error < calibrated.before.error
        True
        >>> prediction = calibrated.tagger.tag(["The cup final was postponed after a storm."])[0]
        >>> prediction.accepted == (prediction.probability >= calibrated.acceptance.threshold)
        True
    """
    check_tagger(tagger)
    check_share("target accuracy", target)
    check_share("confidence", confidence)
    name = tagger.rule_or_own(rule)
    labelled = open_unseen(tagger, data, split, on_progress, allow_training_documents)
    documents = CalibrationDocuments.collect(tagger, labelled, on_progress)
    with _show_fitting(on_progress):
        return _calibrate(tagger, documents, name, target, confidence)


def _show_fitting(on_progress: OnProgress) -> AbstractContextManager[None]:
    return show_step("fitting", "thresholds, curves, acceptance", on_progress, "calibrating")


def _calibrate(
    tagger: Tagger, documents: CalibrationDocuments, name: str, target: float, confidence: float
) -> Calibrated:
    calibration = documents.fit(tagger)
    targets = _list_targets(tagger.calibration) | {name: (target, confidence)}
    acceptance, predicted = documents.accept(tagger, calibration, targets)
    label_acceptance, of_labels = documents.accept_labels(calibration, target, confidence)
    calibration = replace(calibration, acceptance=acceptance, label_acceptance=label_acceptance)
    found = predicted[name]
    return Calibrated(
        rule=name,
        tagger=replace(tagger, calibration=calibration),
        calibration=calibration,
        acceptance=acceptance[name],
        before=reliability(found.probs({}), found.is_right),
        after=reliability(documents.held_out_probs(found, calibration), found.is_right),
        accuracy=float(found.is_right.mean()),
        labels=of_labels,
    )


def find_label_acceptance(
    tagger: Tagger,
    marginals: TrueMarginals,
    target: float = 0.9,
    confidence: float = 0.9,
) -> LabelAcceptance | None:
    """Find which labels a calibrated tagger could accept; None without curves of labels.

    Args:
        tagger: the model.
        marginals: its own p(label | document), not calibrated, and the true labels.
        target: the least accuracy of a label where it is accepted.
        confidence: the confidence that a label reaches the target.
    """
    curves = None if tagger.calibration is None else tagger.calibration.label_curves
    if curves is None:
        return None
    return accept_label_probs(marginals, curves, target, confidence)[0]
