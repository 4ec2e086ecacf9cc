"""Isotonic regression: from a probability to how often it was right, never falling."""

# n documents, B knots

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Isotonic:
    """A rising line through knots, level outside of them."""

    probabilities: npt.NDArray[np.float64]  # (B,) rising
    accuracies: npt.NDArray[np.float64]  # (B,) never falling, between 0 and 1

    def __post_init__(self) -> None:
        """Refuse knots that make no rising line."""
        x, y = self.probabilities, self.accuracies
        is_sound = x.shape == y.shape == (x.size,) and x.size > 0
        if not (is_sound and (np.diff(x) > 0).all() and (np.diff(y) >= 0).all()):
            raise ValueError("the knots of an isotonic regression must rise")
        if not (y > 0).all() or not (y < 1).all():
            raise ValueError("the accuracies of an isotonic regression lie between 0 and 1")

    def __call__(self, probs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return how often sets of these probabilities are right."""
        return np.interp(probs, self.probabilities, self.accuracies)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "probabilities": self.probabilities.tolist(),
            "accuracies": self.accuracies.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Isotonic:
        """Build from plain JSON values."""
        return cls(
            np.array(values["probabilities"], dtype=np.float64),
            np.array(values["accuracies"], dtype=np.float64),
        )


def fit_isotonic(probs: npt.NDArray[np.float64], is_right: npt.NDArray[np.bool_]) -> Isotonic:
    """Fit on documents of which it is known whether they were right, both (n,).

    A knot stands in the middle of each level of the regression, so that the line between rises
    and keeps documents apart. k right of n count as (k + 1/2) / (n + 1): never 0, never 1.
    """
    from sklearn.isotonic import IsotonicRegression, isotonic_regression

    fitted = IsotonicRegression().fit(probs, is_right.astype(np.float64)).predict(probs)
    _, level = np.unique(fitted.round(12), return_inverse=True)
    n = np.bincount(level)
    smoothed = (np.bincount(level, weights=is_right) + 0.5) / (n + 1)
    # Smoothing pulls small levels more: those it turned around become one.
    accuracies, joined = np.unique(
        np.round(isotonic_regression(smoothed, sample_weight=n), 12), return_inverse=True
    )
    middle = np.bincount(joined[level], weights=probs) / np.bincount(joined[level])
    return Isotonic(middle, accuracies)
