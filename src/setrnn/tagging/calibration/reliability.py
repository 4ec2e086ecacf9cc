"""Whether probabilities can be trusted: how often sets of a probability are right."""

# n documents, B bins

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

N_BINS = 15
LEAST_IN_BIN = 10


@dataclass(frozen=True)
class Reliability:
    """Documents by the probability of their predicted set, in bins of about the same size."""

    n_documents: npt.NDArray[np.int64]  # (B,)
    mean_probability: npt.NDArray[np.float64]  # (B,) rising
    accuracy: npt.NDArray[np.float64]  # (B,)
    spread: npt.NDArray[np.int64]  # documents in each twentieth between 0 and 1

    @property
    def error(self) -> float:
        """The expected calibration error: how far probability and accuracy are apart."""
        distance = np.abs(self.mean_probability - self.accuracy)
        return float(np.average(distance, weights=self.n_documents))

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "calibration_error": self.error,
            "n_documents": self.n_documents.tolist(),
            "mean_probability": self.mean_probability.tolist(),
            "accuracy": self.accuracy.tolist(),
            "spread": self.spread.tolist(),
        }


def reliability(
    probs: npt.NDArray[np.float64], is_right: npt.NDArray[np.bool_], n_bins: int = N_BINS
) -> Reliability:
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
