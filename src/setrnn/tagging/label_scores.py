"""Measure label by label: how well each is predicted, and how far its probability is trusted."""

# n documents, L labels

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from setrnn.metrics import hide_labels, indicator_matrices, overlap_by_label
from setrnn.systems.candidates import Bools, Floats, Floats32
from setrnn.tagging.acceptance import LEAST_SHOWN, LabelAcceptance, reliability
from setrnn.tagging.prediction import Prediction

SURE = 0.95  # labels of at least this probability should nearly always be right


@dataclass(frozen=True)
class LabelScores:
    """The measures of one label.

    Precision is None if the label is never predicted, recall if it never occurs.
    """

    label: str
    support: int  # documents that have it
    n_predicted: int
    precision: float | None
    recall: float | None
    f1: float
    threshold: float | None  # it is accepted from this probability on; None if never
    n_accepted: int | None  # None if the model has no acceptance of labels
    accepted_share: float | None  # of the documents where it is predicted
    accepted_accuracy: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class LabelProbabilityScores:
    """How often labels are right, over pairs of a document and a label above 0.05."""

    label_calibration_error: float
    label_calibration_error_raw: float  # of the model's own probabilities
    n_label_pairs: int
    n_sure_labels: int  # pairs of 0.95 or more
    sure_labels_right: float | None  # the share of them that is right


def score_labels(
    truth: Sequence[tuple[str, ...]],
    predictions: Sequence[Prediction],
    names: Sequence[str],
    acceptance: LabelAcceptance | None = None,
    unknown: Any = None,  # noqa: ANN401 (sparse)
) -> tuple[LabelScores, ...]:
    """Measure each label of a model, the most frequent first.

    Predictions of labels that are not known, marked in `unknown` (n, L), are not counted.
    """
    found = overlap_by_label(*_matrices(truth, [p.labels for p in predictions], names, unknown))
    accepted_sets = [each.accepted_labels or () for each in predictions]
    accepted = overlap_by_label(*_matrices(truth, accepted_sets, names, unknown))
    has_acceptance = any(each.accepted_labels is not None for each in predictions)
    order = np.argsort(-found.n_true[: len(names)], kind="stable")
    return tuple(
        LabelScores(
            label=names[label],
            support=int(found.n_true[label]),
            n_predicted=int(found.n_predicted[label]),
            precision=_share(found.n_correct[label], found.n_predicted[label]),
            recall=_share(found.n_correct[label], found.n_true[label]),
            f1=float(found.f1(empty=0.0)[label]),
            threshold=_threshold(acceptance, label),
            n_accepted=int(accepted.n_predicted[label]) if has_acceptance else None,
            accepted_share=_share(accepted.n_predicted[label], found.n_predicted[label])
            if has_acceptance
            else None,
            accepted_accuracy=_share(accepted.n_correct[label], accepted.n_predicted[label]),
        )
        for label in order
    )


def _matrices(
    truth: Sequence[tuple[str, ...]],
    label_sets: Sequence[tuple[str, ...]],
    names: Sequence[str],
    unknown: Any,  # noqa: ANN401 (sparse)
) -> tuple[Any, Any]:
    both = indicator_matrices(truth, label_sets, names)
    if unknown is None:
        return both.truth, both.predicted
    marks = unknown.copy()
    marks.resize(both.truth.shape)
    return both.truth, hide_labels(both.predicted, marks)


def _threshold(acceptance: LabelAcceptance | None, label: int) -> float | None:
    if acceptance is None or acceptance.thresholds[label] > 1:
        return None
    return float(acceptance.thresholds[label])


def _share(n: int, of: int) -> float | None:
    return float(n / of) if of else None


class LabelPairs:
    """The pairs of a document and a label that are shown, collected batch by batch."""

    def __init__(self) -> None:
        self.own: list[tuple[Floats, Bools]] = []
        self.calibrated: list[tuple[Floats, Bools]] = []

    def add(self, own: Floats32, calibrated: Floats32, truth: Any) -> None:  # noqa: ANN401 (sparse)
        """Add the probabilities (n, L) of a batch, and its true labels as a sparse matrix."""
        is_label = np.zeros(own.shape, dtype=bool)
        row, column = truth.nonzero()
        is_model = column < own.shape[1]
        is_label[row[is_model], column[is_model]] = True
        for kept, probs in ((self.own, own), (self.calibrated, calibrated)):
            is_shown = probs > LEAST_SHOWN
            kept.append((probs[is_shown].astype(np.float64), is_label[is_shown]))

    def measure(self) -> LabelProbabilityScores:
        """Measure all pairs."""
        errors = []
        for kept in (self.calibrated, self.own):
            probs = np.concatenate([each for each, _ in kept])
            is_right = np.concatenate([each for _, each in kept])
            errors.append(reliability(probs, is_right).error if len(probs) else 0.0)
        probs = np.concatenate([each for each, _ in self.calibrated])
        is_right = np.concatenate([each for _, each in self.calibrated])
        is_sure = probs >= SURE
        n_sure, n_right = int(is_sure.sum()), int(is_right[is_sure].sum())
        return LabelProbabilityScores(
            errors[0], errors[1], len(probs), n_sure, n_right / n_sure if n_sure else None
        )
