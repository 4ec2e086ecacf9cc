"""The probability above which predicted sets need no second look."""

# n documents

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from setrnn.errors import ConfigError

START = 4  # times the fewest documents that can show the target, all of them right
LEAST_START = 0.05  # of all documents
STEP = 1.1  # how much further down each test looks

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Acceptance:
    """A prediction is accepted where its calibrated probability is at least the threshold."""

    rule: str
    target: float  # the accuracy the accepted must have
    confidence: float  # that they have it
    threshold: float | None  # None: nothing is accepted
    share: float  # of the documents it was fitted on
    accuracy: float  # of the accepted there; where none are, the best that was reached
    n_accepted: int

    def accepts(self, probs: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Tell which predictions are accepted."""
        if self.threshold is None:
            return np.zeros(len(probs), dtype=bool)
        return probs >= self.threshold

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Acceptance:
        """Build from plain JSON values."""
        threshold = values["threshold"]
        return cls(
            rule=str(values["rule"]),
            target=float(values["target"]),
            confidence=float(values["confidence"]),
            threshold=None if threshold is None else float(threshold),
            share=float(values["share"]),
            accuracy=float(values["accuracy"]),
            n_accepted=int(values["n_accepted"]),
        )


def fit_acceptance(
    rule: str,
    probs: npt.NDArray[np.float64],
    is_right: npt.NDArray[np.bool_],
    target: float,
    confidence: float,
) -> Acceptance:
    """Find the lowest threshold whose accepted documents are right often enough.

    From the most probable documents (n,) downwards, each threshold is tested by the lower bound
    of its accuracy; the first that fails ends it. Tests in an order fixed before need no
    correction: the threshold found keeps its target with the confidence asked for.
    """
    check_share("target accuracy", target)
    check_share("confidence", confidence)
    order = np.argsort(-probs, kind="stable")
    falling, n_right = probs[order], np.cumsum(is_right[order], dtype=np.int64)
    sizes = _sizes(falling, target, confidence)
    right = n_right[sizes - 1]
    bounds = lower_bound(right, sizes, confidence)
    n_passed = int(np.argmin(np.append(bounds >= target, False)))
    if n_passed == 0:
        best = int(np.argmax(bounds))
        accuracy = float(right[best] / sizes[best])
        return Acceptance(rule, target, confidence, None, 0.0, accuracy, 0)
    n_accepted = int(sizes[n_passed - 1])
    # Midway to the next document: rounding must not turn anyone away.
    below = falling[n_accepted] if n_accepted < len(falling) else falling[-1]
    threshold = float((falling[n_accepted - 1] + below) / 2)
    accuracy = float(n_right[n_accepted - 1] / n_accepted)
    share = n_accepted / len(probs)
    return Acceptance(rule, target, confidence, threshold, share, accuracy, n_accepted)


def lower_bound(n_right: Counts, n: Counts, confidence: float) -> npt.NDArray[np.float64]:
    """Return what the accuracy is at least, by Clopper and Pearson."""
    bound = betaincinv(np.maximum(n_right, 1), n - n_right + 1, 1 - confidence)
    return np.where(n_right == 0, 0.0, bound)


def accuracy_interval(n_right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the two-sided interval of an accuracy, by Clopper and Pearson."""
    if n == 0:
        return 0.0, 1.0
    one_sided = (1 + confidence) / 2
    low = lower_bound(np.array([n_right]), np.array([n]), one_sided)
    high = 1 - lower_bound(np.array([n - n_right]), np.array([n]), one_sided)
    return float(low[0]), float(high[0])


def check_share(what: str, value: float) -> None:
    """Refuse what is not between 0 and 1."""
    if not 0 < value < 1:
        raise ConfigError(f"The {what} must lie between 0 and 1, got {value}. Try 0.9.")


def _sizes(falling: npt.NDArray[np.float64], target: float, confidence: float) -> Counts:
    """Return how many documents each test takes; those of the same probability together."""
    n = len(falling)
    fewest = math.log(1 - confidence) / math.log(target)  # all right, and the bound is reached
    start = min(max(START * fewest, LEAST_START * n, 1), n)
    n_steps = math.ceil(math.log(n / start) / math.log(STEP)) + 1
    wanted = np.minimum(np.ceil(start * STEP ** np.arange(n_steps)), n)
    ends = np.append(np.nonzero(np.diff(falling))[0] + 1, n)
    return np.unique(ends[np.searchsorted(ends, wanted)])
