"""How often predictions of a given probability are right, and which to accept without review."""

# n documents, B bins

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import scipy

from setrnn.errors import ConfigError
from setrnn.systems.candidates import Bools, Floats, Ints

N_BINS = 15
LEAST_IN_BIN = 10  # documents
FIRST_TEST = 4  # times the fewest documents that can show the target if all of them are right
LEAST_FIRST_TEST = 0.05  # of all documents
STEP = 1.1  # each test takes this many times the documents of the test before


def as_plain(value: Any) -> Any:  # noqa: ANN401 (a dataclass, or a value in one)
    """Return a dataclass as JSON values, with its arrays as lists."""
    if is_dataclass(value):
        return {each.name: as_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: as_plain(each) for name, each in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


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
    n_bins = max(min(n_bins, len(probs) // LEAST_IN_BIN), 1)
    inner = np.quantile(probs, np.arange(1, n_bins) / n_bins)
    _, of_bin = np.unique(np.searchsorted(inner, probs, side="right"), return_inverse=True)
    n = np.bincount(of_bin)
    return Reliability(
        n_documents=n,
        mean_probability=np.bincount(of_bin, weights=probs) / n,
        accuracy=np.bincount(of_bin, weights=is_right) / n,
        spread=np.histogram(probs, bins=20, range=(0, 1))[0],
    )


@dataclass(frozen=True)
class Acceptance:
    """A prediction is accepted if its calibrated probability is at least the threshold."""

    rule: str
    target: float  # the least accuracy of the accepted predictions
    confidence: float  # the confidence that they reach the target
    threshold: float | None  # None if nothing is accepted
    share: float  # of the documents it was fitted on that are accepted
    accuracy: float  # of the accepted documents; if there are none, the best of a tested group
    n_accepted: int

    def __post_init__(self) -> None:
        """Raise TypeError if a value is not a number, as in a damaged file."""
        numbers = [self.target, self.confidence, self.share, self.accuracy, self.n_accepted]
        numbers += [] if self.threshold is None else [self.threshold]
        if not all(isinstance(each, float | int) for each in numbers):
            raise TypeError("an acceptance holds numbers")

    def accepts(self, probs: Floats) -> Bools:
        """Return which predictions are accepted."""
        if self.threshold is None:
            return np.zeros(len(probs), dtype=bool)
        return probs >= self.threshold


def fit_acceptance(
    rule: str, probs: Floats, is_right: Bools, target: float, confidence: float
) -> Acceptance:
    """Find the lowest threshold whose accepted documents are right often enough.

    Groups of documents (n,) are tested in descending order of probability: the lower confidence
    bound of a group's accuracy must reach the target, and the first group that fails ends the
    search. The order of the tests is fixed in advance, so they need no correction: the accepted
    documents reach the target with the confidence asked for.
    """
    check_share("target accuracy", target)
    check_share("confidence", confidence)
    order = np.argsort(-probs, kind="stable")
    descending, n_right = probs[order], np.cumsum(is_right[order], dtype=np.int64)
    sizes = _group_sizes(descending, target, confidence)
    right = n_right[sizes - 1]
    bounds = lower_bound(right, sizes, confidence)
    n_passed = int(np.argmin(np.append(bounds >= target, False)))
    if n_passed == 0:
        best = int(np.argmax(bounds))
        accuracy = float(right[best] / sizes[best])
        return Acceptance(rule, target, confidence, None, 0.0, accuracy, 0)
    n_accepted = int(sizes[n_passed - 1])
    # Midway to the next document, so that rounding rejects nobody.
    below = descending[n_accepted] if n_accepted < len(descending) else descending[-1]
    threshold = float((descending[n_accepted - 1] + below) / 2)
    accuracy = float(n_right[n_accepted - 1] / n_accepted)
    share = n_accepted / len(probs)
    return Acceptance(rule, target, confidence, threshold, share, accuracy, n_accepted)


def lower_bound(n_right: Ints, n: Ints, confidence: float) -> Floats:
    """Return the one-sided lower confidence bound of an accuracy (Clopper and Pearson)."""
    bound = scipy.special.betaincinv(np.maximum(n_right, 1), n - n_right + 1, 1 - confidence)
    return np.where(n_right == 0, 0.0, bound)


def accuracy_interval(n_right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the two-sided confidence interval of an accuracy (Clopper and Pearson)."""
    if n == 0:
        return 0.0, 1.0
    one_sided = (1 + confidence) / 2
    low = lower_bound(np.array([n_right]), np.array([n]), one_sided)
    high = 1 - lower_bound(np.array([n - n_right]), np.array([n]), one_sided)
    return float(low[0]), float(high[0])


def check_share(name: str, value: float) -> None:
    """Raise ConfigError if a value is not between 0 and 1."""
    if not 0 < value < 1:
        raise ConfigError(f"The {name} must lie between 0 and 1, got {value}. Try 0.9.")


def _group_sizes(descending: Floats, target: float, confidence: float) -> Ints:
    """Return the number of documents of each test; equal probabilities stay together."""
    n = len(descending)
    fewest = math.log(1 - confidence) / math.log(target)  # if all of them are right
    start = min(max(FIRST_TEST * fewest, LEAST_FIRST_TEST * n, 1), n)
    n_steps = math.ceil(math.log(n / start) / math.log(STEP)) + 1
    wanted = np.minimum(np.ceil(start * STEP ** np.arange(n_steps)), n)
    ends = np.append(np.nonzero(np.diff(descending))[0] + 1, n)
    return np.unique(ends[np.searchsorted(ends, wanted)])
