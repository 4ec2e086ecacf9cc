"""How often predictions of a given probability are right, and which to accept without review."""

# n documents, B bins

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from setrnn.errors import ConfigError
from setrnn.systems.candidates import Bools, Floats, Floats32, Ids, Ints
from setrnn.systems.true_marginals import TrueMarginals

N_BINS = 15
MIN_IN_BIN = 10  # documents
MIN_SHOWN = 0.05  # the labels whose probabilities are compared with how often they are right
FIRST_TEST = 4  # times the fewest documents that can show the target if all of them are right
MIN_FIRST_TEST = 0.05  # of all documents
MIN_ACCEPTED = 0.5  # no label below is accepted, even if nearly all above are right
SHOWN_TARGETS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
NEVER = 2.0  # a threshold that no probability reaches
STEP = 1.1  # each test takes this many times the documents of the test before


def as_plain(value: Any) -> dict[str, Any]:  # noqa: ANN401 (a dataclass)
    """Return a dataclass as JSON values, with its arrays as lists."""

    def to_lists(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        return {n: each.tolist() if isinstance(each, np.ndarray) else each for n, each in pairs}

    return asdict(value, dict_factory=to_lists)


@dataclass(frozen=True)
class Reliability:
    """Documents by the probability of their predicted set, in bins of about the same size."""

    n_documents: Ints  # (B,)
    mean_probability: Floats  # (B,) increasing
    accuracy: Floats  # (B,)
    spread: Ints  # documents in each twentieth between 0 and 1

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of probability and accuracy."""
        distance = np.abs(self.mean_probability - self.accuracy)
        return float(np.average(distance, weights=self.n_documents))

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"calibration_error": self.error, **as_plain(self)}


def reliability(probs: Floats, is_right: Bools, n_bins: int = N_BINS) -> Reliability:
    """Sort documents (n,) into bins of equal mass; equal probabilities share a bin."""
    n_bins = max(min(n_bins, len(probs) // MIN_IN_BIN), 1)
    inner = np.quantile(probs, np.arange(1, n_bins) / n_bins)
    _, of_bin = np.unique(np.searchsorted(inner, probs, side="right"), return_inverse=True)
    n = np.bincount(of_bin)
    return Reliability(
        n_documents=n,
        mean_probability=np.bincount(of_bin, weights=probs) / n,
        accuracy=np.bincount(of_bin, weights=is_right) / n,
        spread=np.histogram(probs, bins=20, range=(0, 1))[0],
    )


def label_reliability(probs: Floats | Floats32, is_label: Bools) -> Reliability:
    """Sort the pairs of a document and a label, (E,), that are shown into bins of equal mass."""
    is_shown = probs > MIN_SHOWN
    if not is_shown.any():
        return reliability(np.zeros(1), np.zeros(1, dtype=bool))
    return reliability(probs[is_shown].astype(np.float64), is_label[is_shown])


@dataclass(frozen=True)
class Acceptance:
    """A prediction is accepted if its calibrated probability is at least the threshold."""

    rule: str
    target: float  # the least accuracy of the accepted predictions
    confidence: float  # the confidence that they reach the target
    threshold: float | None  # None if nothing is accepted
    share: float  # of the documents it was fitted on that are accepted
    # Of the accepted documents; if there are none, of the group of the most probable documents, a
    # twentieth or more, whose accuracy has the highest lower bound: the same for each target.
    accuracy: float
    n_accepted: int

    def accepts(self, probs: Floats) -> Bools:
        """Return which predictions are accepted."""
        return probs >= (NEVER if self.threshold is None else self.threshold)


def fit_acceptance(
    rule: str, probs: Floats, is_right: Bools, target: float, confidence: float
) -> Acceptance:
    """Find the lowest threshold whose accepted documents (n,) are right often enough."""
    first = max(FIRST_TEST * _fewest(target, confidence), MIN_FIRST_TEST * len(probs))
    threshold, n_accepted, accuracy = _find_threshold(probs, is_right, first, target, confidence)
    found = None if threshold == NEVER else threshold
    if found is None:  # the same groups for each target
        accuracy = _best_accuracy(probs, is_right, confidence)
    share = n_accepted / len(probs)
    return Acceptance(rule, target, confidence, found, share, accuracy, n_accepted)


@dataclass(frozen=True)
class LabelAcceptance:
    """A label is accepted if its calibrated probability is at least the label's threshold."""

    target: float  # the least accuracy of each label where it is accepted
    confidence: float  # the confidence that a label reaches the target, for each label by itself
    thresholds: Floats  # (L,); above 1 for a label that is never accepted

    @property
    def n_safe(self) -> int:
        """The number of labels that can be accepted."""
        return int((self.thresholds <= 1).sum())

    def threshold_of(self, label: int) -> float | None:
        """Return the threshold of a label; None if it is never accepted."""
        threshold = float(self.thresholds[label])
        return None if threshold > 1 else threshold

    def accepts(self, probs: npt.NDArray[Any], labels: Ids) -> Bools:
        """Return which labels (n, S), padded with -1, are accepted at probabilities (n, S)."""
        return np.asarray((probs >= self.thresholds[labels]) & (labels >= 0))


def fit_label_acceptance(
    own: TrueMarginals, probs: Floats32, held_out: Floats32, target: float, confidence: float
) -> LabelAcceptance:
    """Find the lowest threshold of each label above which it is right often enough.

    The first test has half the documents that the model's own probabilities expect to have the
    label. Labels expected in too few documents for a test are tested together.

    Args:
        own: the model's own p(label | document), of pairs (E,).
        probs: the calibrated ones.
        held_out: the same, from curves fitted on other documents.
        target: the least accuracy of a label where it is accepted.
        confidence: the confidence that a label reaches the target.
    """
    fewest, expected = _fewest(target, confidence), own.sum_by_label(own.probs)

    def find(probs: Floats32, is_right: Bools, n_expected: float) -> float:
        first = max(fewest, min(FIRST_TEST * fewest, n_expected / 2))
        if first > len(probs):
            return NEVER
        return _find_threshold(probs, is_right, first, target, confidence, MIN_ACCEPTED)[0]

    is_rare = expected < fewest
    thresholds = np.full(own.shape[1], NEVER)
    for label in np.flatnonzero(~is_rare).tolist():
        column = slice(label, label + 1)
        of_label, is_right = (own.fill(each, column)[:, 0] for each in (probs, own.is_label))
        thresholds[label] = find(of_label, is_right, expected[label])
    of_rare = is_rare[own.label]
    n_expected = expected[is_rare].sum()
    thresholds[is_rare] = find(held_out[of_rare], own.is_label[of_rare], n_expected)
    return LabelAcceptance(target, confidence, thresholds)


@dataclass(frozen=True)
class AcceptedShares:
    """What would be accepted with a target accuracy."""

    target: float
    sets: float  # the share of the predicted sets
    labels: float  # the share of the labels that are more probable than not


def list_accepted_shares(
    asked: float,
    confidence: float,
    sets: tuple[Floats, Bools],
    own: TrueMarginals,
    labels: tuple[Floats32, Floats32],
) -> tuple[AcceptedShares, ...]:
    """Return which share would be accepted with each of some targets and with the one asked for.

    Args:
        asked: a target accuracy.
        confidence: the confidence in the targets.
        sets: the probabilities of the predicted sets, and whether they are right; both (n,).
        own: the model's own p(label | document), of pairs (E,).
        labels: the calibrated ones, and those from curves fitted on other documents.
    """
    is_likely = labels[0] >= MIN_ACCEPTED

    def find(target: float) -> AcceptedShares:
        thresholds = fit_label_acceptance(own, *labels, target, confidence).thresholds
        n_accepted = (labels[0] >= thresholds[own.label])[is_likely].sum()
        of_sets = fit_acceptance("", *sets, target, confidence).share
        return AcceptedShares(target, of_sets, float(n_accepted / max(is_likely.sum(), 1)))

    return tuple(find(target) for target in sorted({*SHOWN_TARGETS, asked}))


def _best_accuracy(probs: Floats, is_right: Bools, confidence: float) -> float:
    """Return the accuracy of the group with the highest lower bound."""
    order = np.argsort(-probs, kind="stable")
    sizes = _group_sizes(probs[order], MIN_FIRST_TEST * len(probs))
    n_right = np.cumsum(is_right[order], dtype=np.int64)[sizes - 1]
    return float((n_right / sizes)[np.argmax(lower_bound(n_right, sizes, confidence))])


@dataclass(frozen=True)
class Shown:
    """A label is shown beside a prediction if the model's own probability reaches the threshold."""

    target: float  # the least mean share of a document's true labels that are shown
    threshold: float | None  # None if no threshold reaches the target
    recall: float  # the mean share in the documents it was fitted on
    n_labels: float  # the mean number of labels that are shown there


def fit_shown(own: TrueMarginals, n_true: Ints, target: float) -> Shown:
    """Find the highest threshold whose labels contain enough of the true ones, in the mean.

    Conformal risk control (Angelopoulos et al. 2022): one more document, all of whose labels are
    missed, is counted. The mean share in other documents like these then reaches the target,
    over the draws of both. The probabilities are the model's own, which are not fitted to these.

    Args:
        own: the model's own p(label | document), of pairs (E,).
        n_true: the number of true labels of each document, (n,), with those that the model lacks.
        target: the least mean share; of a document without labels, it is 1.
    """
    n = own.shape[0]
    is_found = own.is_label & (own.probs > 0)
    order = np.argsort(-own.probs[is_found], kind="stable")
    probs = own.probs[is_found][order]
    shares = 1 / n_true[own.document[is_found][order]]
    total = (n_true == 0).sum() + np.concatenate([[0.0], shares.cumsum()])
    is_enough = total[1:] >= target * (n + 1) - 1e-9
    if not is_enough.any():
        return Shown(target, None, float(total[-1] / n), 0.0)
    last = probs[is_enough.argmax()]
    below = own.probs[own.probs < last].max(initial=0.0)
    recall = float(total[(probs >= last).sum()] / n)
    # Midway to the next label, so that rounding hides none.
    threshold = (float(last) + float(below)) / 2
    return Shown(target, threshold, recall, float((own.probs >= last).sum() / n))


def _find_threshold(
    probs: npt.NDArray[Any],
    is_right: Bools,
    first: float,
    target: float,
    confidence: float,
    least: float = 0.0,
) -> tuple[float, int, float]:
    """Return the lowest threshold that passes, how many it accepts, and their accuracy.

    Groups are tested in descending order of probability, from the `first` ones on and not below
    `least`: the lower confidence bound of a group's accuracy must reach the target, and the first
    group that fails ends the search. The order of the tests is fixed in advance, so they need no
    correction: what is accepted reaches the target with the confidence asked for. If no group
    passes, the threshold is NEVER.
    """
    order = np.argsort(-probs, kind="stable")
    descending = probs[order].astype(np.float64)
    sizes = _group_sizes(descending, first)
    sizes = sizes[descending[sizes - 1] >= least]
    n_right = np.cumsum(is_right[order], dtype=np.int64)[sizes - 1]
    bounds = lower_bound(n_right, sizes, confidence)
    n_passed = int(np.argmin(np.append(bounds >= target, False)))
    if n_passed == 0:
        return NEVER, 0, 0.0
    n_accepted = int(sizes[n_passed - 1])
    # Midway to the next document, so that rounding rejects none of the accepted ones.
    below = descending[min(n_accepted, len(descending) - 1)]
    threshold = float((descending[n_accepted - 1] + below) / 2)
    return threshold, n_accepted, float(n_right[n_passed - 1] / n_accepted)


def lower_bound(n_right: Ints, n: Ints, confidence: float) -> Floats:
    """Return the one-sided lower confidence bound of an accuracy (Clopper and Pearson)."""
    bound = scipy.special.betaincinv(np.maximum(n_right, 1), n - n_right + 1, 1 - confidence)
    return np.where(n_right == 0, 0.0, bound)


def accuracy_interval(n_right: int, n: int) -> tuple[float, float]:
    """Return the two-sided 95% confidence interval of an accuracy (Clopper and Pearson)."""
    if n == 0:
        return 0.0, 1.0
    from scipy.stats import binomtest  # slow to import, and needed only here

    low, high = binomtest(n_right, n).proportion_ci(0.95, method="exact")
    return float(low), float(high)


def check_target(accuracy: float, confidence: float, recall: float | None = None) -> None:
    """Raise ConfigError if a target or its confidence is not between 0 and 1."""
    named = {"target accuracy": accuracy, "confidence": confidence, "target recall": recall}
    for name, value in named.items():
        if value is not None and not 0 < value < 1:
            raise ConfigError(f"The {name} must lie between 0 and 1, got {value}. Try 0.9.")


def _fewest(target: float, confidence: float) -> int:
    """Return how many documents show the target, if all of them are right."""
    return math.ceil(math.log(1 - confidence) / math.log(target))


def _group_sizes(descending: Floats, first: float) -> Ints:
    """Return the number of documents of each test; equal probabilities stay together."""
    n = len(descending)
    start = min(max(first, 1), n)
    n_steps = math.ceil(math.log(n / start) / math.log(STEP)) + 1
    wanted = np.minimum(np.ceil(start * STEP ** np.arange(n_steps)), n)
    ends = np.append(np.nonzero(np.diff(descending))[0] + 1, n)
    return np.unique(ends[np.searchsorted(ends, wanted)])
