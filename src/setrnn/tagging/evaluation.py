"""The measures of a model by one rule, on documents whose labels are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from setrnn.data.hierarchy import HierarchicalScores
from setrnn.metrics import RankingScores, Scores
from setrnn.systems.candidates import Bools
from setrnn.tagging.acceptance import accuracy_interval
from setrnn.tagging.documents import MOST_SEEN
from setrnn.tagging.label_scores import LabelProbabilityScores, LabelScores
from setrnn.tagging.prediction import Prediction

LEAST_LOG_PROB = float(np.log(1e-12))  # so that one impossible set does not decide the mean


@dataclass(frozen=True)
class SetLogLikelihood:
    """The mean of log p(true set), over documents all of whose labels the model knows."""

    mean: float | None  # None if there are no such documents
    n_impossible_sets: int  # sets of probability below 1e-12, counted as 1e-12


@dataclass(frozen=True)
class CertificateScores:
    """What the search proves, over the predictions that have a certificate."""

    share_proved: float
    pruned_mass: float  # mean


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
    ranking: RankingScores  # by p(label | document); does not depend on the rule
    # The mean probability of the predicted sets; by rule "set" and well calibrated, it is near
    # the subset accuracy.
    mean_probability: float
    calibration_error: float  # the expected calibration error of the predictions
    calibration_error_raw: float  # the same with the model's own probabilities
    # Prediction by the rule, with the search for many sets that all measures share.
    documents_per_second: float
    missing_mass: float  # the mean probability of the sets that were not found
    set_log_likelihood: SetLogLikelihood
    label_probabilities: LabelProbabilityScores  # does not depend on the rule
    labels: tuple[LabelScores, ...]  # the most frequent first; not part of `as_dict`
    accepted: AcceptedScores | None = None  # None if the model has no acceptance for the rule
    certificates: CertificateScores | None = None  # of set-rnn-exact, by rule "set"
    share_trained_on: float = 0.0  # of the documents, that the model was trained on; see `is_seen`
    hierarchical: HierarchicalScores | None = None  # None without a hierarchy

    @property
    def is_seen(self) -> bool:
        """Whether the model was trained on so many documents that the measures are too good."""
        return self.share_trained_on > MOST_SEEN

    def as_dict(self) -> dict[str, Any]:
        """Return all measures as plain values."""
        return {
            "rule": self.rule,
            **self.scores.as_dict(),
            **self.ranking.as_dict(),
            "mean_probability": self.mean_probability,
            "missing_mass": self.missing_mass,
            "set_log_likelihood": self.set_log_likelihood.mean,
            "n_impossible_sets": self.set_log_likelihood.n_impossible_sets,
            "calibration_error": self.calibration_error,
            "calibration_error_raw": self.calibration_error_raw,
            **asdict(self.label_probabilities),
            **({} if self.accepted is None else asdict(self.accepted)),
            **({} if self.certificates is None else asdict(self.certificates)),
            **({} if self.hierarchical is None else asdict(self.hierarchical)),
            "share_trained_on": self.share_trained_on,
            "documents_per_second": round(self.documents_per_second, 1),
        }


def score_log_likelihood(true_log_probs: Sequence[float | None]) -> SetLogLikelihood:
    """Return the mean log-probability of the true sets; None marks those that are left out."""
    log_probs = np.array([each for each in true_log_probs if each is not None])
    mean = float(np.maximum(log_probs, LEAST_LOG_PROB).mean()) if len(log_probs) else None
    return SetLogLikelihood(mean, int((log_probs < LEAST_LOG_PROB).sum()))


def score_certificates(predicted: Sequence[Prediction]) -> CertificateScores | None:
    """Return the means over the predictions with a certificate; None if there are none."""
    found = [each.certificate for each in predicted if each.certificate is not None]
    if not found:
        return None
    return CertificateScores(
        float(np.mean([each.proved for each in found])),
        float(np.mean([each.pruned_mass for each in found])),
    )


def score_accepted(predicted: Sequence[Prediction], is_right: Bools) -> AcceptedScores | None:
    """Return the accuracy of the accepted predictions; None if acceptance is not known."""
    if not predicted or predicted[0].accepted is None:
        return None
    is_accepted = np.array([each.accepted for each in predicted])
    n, n_right = int(is_accepted.sum()), int(is_right[is_accepted].sum())
    low, high = accuracy_interval(n_right, n)
    return AcceptedScores(n, n / len(predicted), n_right / n if n else None, low, high)
