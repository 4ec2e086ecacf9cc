"""The measures of a model by one rule: of its sets, its probabilities and each of its labels."""

# n documents, L labels

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np

from setrnn.data.hierarchy import HierarchicalScores
from setrnn.metrics import (
    Overlap,
    Scores,
    hide_labels,
    indicator_matrices,
    overlap_by_label,
)
from setrnn.systems.candidates import Bools
from setrnn.tagging.documents import MAX_SEEN
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.trust.acceptance import (
    LabelAcceptance,
    accuracy_interval,
)

LabelSets: TypeAlias = Sequence[tuple[str, ...]]


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


@dataclass(frozen=True)
class AcceptedScores:
    """The accuracy of the accepted predictions, with its 95% confidence interval."""

    n_accepted: int
    share_accepted: float
    accuracy_accepted: float | None  # None if nothing was accepted
    accuracy_accepted_low: float
    accuracy_accepted_high: float


@dataclass(frozen=True)
class Evaluation:
    """The measures of one model by one rule, on one set of documents."""

    rule: str
    scores: Scores
    # The mean probability of the predicted sets; by rule "set" and well calibrated, it is near
    # the subset accuracy.
    mean_probability: float
    calibration_error: float  # the expected calibration error of the predictions
    calibration_error_raw: float  # the same with the model's own probabilities
    # What follows, up to `labels`, does not depend on the rule.
    documents_per_second: float  # of prediction by all rules that were measured together
    missing_mass: float  # the mean probability of the sets that were not found
    # The mean of log p(true set), over the documents all of whose labels the model knows; None if
    # there are none.
    set_log_likelihood: float | None
    n_impossible_sets: int  # of probability below 1e-12, counted as 1e-12
    # How often labels are right, over pairs of a document and a label above 0.05.
    label_calibration_error: float
    label_calibration_error_raw: float  # of the model's own probabilities
    labels: tuple[LabelScores, ...]  # the most frequent first; not part of `as_dict`
    accepted: AcceptedScores | None = None  # None if the model has no acceptance for the rule
    share_trained_on: float = 0.0  # of the documents, that the model was trained on; see `is_seen`
    hierarchical: HierarchicalScores | None = None  # None without a hierarchy
    # Of each document; not part of `as_dict`.
    predictions: tuple[Prediction, ...] = field(default=(), repr=False)
    # The model's own log p of each true set; None if it has an unknown label.
    true_log_probs: tuple[float | None, ...] = field(default=(), repr=False)

    @property
    def is_seen(self) -> bool:
        """Whether the model was trained on so many of the documents that the measures mislead."""
        return self.share_trained_on > MAX_SEEN

    def as_dict(self) -> dict[str, Any]:
        """Return all measures as plain values."""
        groups = ("scores", "labels", "accepted", "hierarchical")
        of_documents = ("predictions", "true_log_probs")
        names = [each.name for each in fields(self)]
        names = [name for name in names if name not in (*groups, *of_documents)]
        values = {name: getattr(self, name) for name in names}
        values |= self.scores.as_dict()
        for group in (self.accepted, self.hierarchical):
            values |= {} if group is None else asdict(group)
        return {**values, "documents_per_second": round(self.documents_per_second, 1)}


def score_accepted(predicted: Sequence[Prediction], is_right: Bools) -> AcceptedScores | None:
    """Return the accuracy of the accepted predictions; None if acceptance is not known."""
    if not predicted or predicted[0].accepted is None:
        return None
    is_accepted = np.array([each.accepted for each in predicted])
    n, n_right = int(is_accepted.sum()), int(is_right[is_accepted].sum())
    low, high = accuracy_interval(n_right, n)
    return AcceptedScores(n, n / len(predicted), n_right / n if n else None, low, high)


def score_labels(
    truth: LabelSets,
    predictions: Sequence[Prediction],
    names: Sequence[str],
    acceptance: LabelAcceptance | None = None,
    unknown: Any = None,  # noqa: ANN401 (sparse)
) -> tuple[LabelScores, ...]:
    """Measure each label of a model, the most frequent first.

    Predictions of labels that are not known, marked in `unknown` (n, L), are not counted.
    """

    def overlap(label_sets: LabelSets) -> Overlap:
        true, predicted = indicator_matrices(truth, label_sets, names)
        if unknown is None:
            return overlap_by_label(true, predicted)
        marks = unknown.copy()
        marks.resize(true.shape)
        return overlap_by_label(true, hide_labels(predicted, marks))

    found = overlap([each.labels for each in predictions])
    accepted = overlap([each.accepted_labels or () for each in predictions])
    has_acceptance = any(each.accepted_labels is not None for each in predictions)
    f1, scores = found.f1(empty=0.0), []
    for label in np.argsort(-found.n_true[: len(names)], kind="stable"):
        n_true, n_predicted = int(found.n_true[label]), int(found.n_predicted[label])
        n_accepted = int(accepted.n_predicted[label])
        is_safe = acceptance is not None and acceptance.thresholds[label] <= 1
        scores.append(
            LabelScores(
                label=names[label],
                support=n_true,
                n_predicted=n_predicted,
                precision=_share(found.n_correct[label], n_predicted),
                recall=_share(found.n_correct[label], n_true),
                f1=float(f1[label]),
                threshold=float(acceptance.thresholds[label]) if acceptance and is_safe else None,
                n_accepted=n_accepted if has_acceptance else None,
                accepted_share=_share(n_accepted, n_predicted) if has_acceptance else None,
                accepted_accuracy=_share(accepted.n_correct[label], n_accepted),
            )
        )
    return tuple(scores)


def _share(n: int, of: int) -> float | None:
    return float(n / of) if of else None
