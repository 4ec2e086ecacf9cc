"""One temperature T: a document's probabilities to the power of 1/T, summing to 1 again."""

# n documents, K candidates and one outcome more, "another set"

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

LEAST_MISSING = 1e-6  # another set is never impossible: one such document would decide T
RANGE = (0.05, 20.0)  # of T


def with_another_set(log_probs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Add the probability that the candidates (n, K) leave out: (n, K + 1)."""
    missing = np.maximum(1 - np.exp(log_probs).sum(axis=1, keepdims=True), LEAST_MISSING)
    return np.concatenate([log_probs, np.log(missing)], axis=1)


def fit_temperature(log_probs: npt.NDArray[np.float64], true_rank: npt.NDArray[np.int64]) -> float:
    """Choose T so that what was true is as likely as can be.

    Args:
        log_probs: of the candidates, (n, K).
        true_rank: which candidate is the true set, (n,); -1 where none is.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and only needed here

    outcomes = with_another_set(log_probs)
    document = np.arange(len(outcomes))  # -1 reads the last outcome, another set

    def loss(log_temperature: float) -> float:
        scaled = log_softmax(outcomes / np.exp(log_temperature), axis=1)
        return float(-scaled[document, true_rank].mean())

    # convex in 1/T, so there is one minimum
    bounds = (math.log(RANGE[0]), math.log(RANGE[1]))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))
