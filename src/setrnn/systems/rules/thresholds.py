"""Thresholds on p(label | document): one for all labels, and one a label."""

# n documents, L labels

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Chosen by fitting on one half of valid and measuring on the other: docs/rules.md
EXPECTED_WEIGHT = 0.5


@dataclass(frozen=True)
class Thresholds:
    """A label is predicted where its probability is at least its threshold."""

    common: float  # for the best micro-F1
    by_label: npt.NDArray[np.float64]  # (L,) for the best label-F1

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"common": self.common, "by_label": self.by_label.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Thresholds:
        """Build from plain JSON values."""
        return cls(float(values["common"]), np.array(values["by_label"], dtype=np.float64))


def choose_thresholds(
    marginals: npt.NDArray[np.float32], is_label: npt.NDArray[np.bool_]
) -> Thresholds:
    """Choose the thresholds by documents whose labels are known: both (n, L).

    The common one has the best micro-F1 of all. A label's own has its best F1, counted over
    what is known and, at half the weight, what the marginals themselves expect: so the few
    documents of a rare label do not decide alone. A label of no document gets the common one.
    """
    if not is_label.any() or not (marginals > 0).any():
        return Thresholds(0.5, np.full(is_label.shape[1], 0.5))
    common = float(_best_thresholds(marginals.reshape(1, -1), is_label.reshape(1, -1), 0.0)[0])
    by_label = _best_thresholds(marginals.T, is_label.T, EXPECTED_WEIGHT)
    has_own = is_label.any(axis=0) & np.isfinite(by_label)
    return Thresholds(common, np.where(has_own, by_label, common))


def _best_thresholds(
    probs: npt.NDArray[Any], is_true: npt.NDArray[np.bool_], expected_weight: float
) -> npt.NDArray[np.float64]:
    """Return for each row (R, m) the threshold of best F1, NaN where all probabilities are 0.

    Halfway between two of the probabilities: the last that passes and the next below.
    """
    order = np.argsort(-probs, axis=1, kind="stable")
    values = np.take_along_axis(probs, order, axis=1).astype(np.float64)
    n_hits = np.take_along_axis(is_true, order, axis=1).cumsum(axis=1, dtype=np.float64)
    n_passed = np.arange(1, values.shape[1] + 1, dtype=np.float64)
    n_true = is_true.sum(axis=1, keepdims=True).astype(np.float64)
    if expected_weight:
        n_hits += expected_weight * values.cumsum(axis=1)
        n_true += expected_weight * values.sum(axis=1, keepdims=True)
    f1 = 2 * n_hits / ((1 + expected_weight) * n_passed + n_true)
    below = np.concatenate([values[:, 1:], np.zeros((len(values), 1))], axis=1)
    f1[values == below] = -1  # equal probabilities pass together or not at all; 0 never does
    best = f1.argmax(axis=1)
    rows = np.arange(len(values))
    halfway = (values[rows, best] + below[rows, best]) / 2
    return np.where(f1[rows, best] >= 0, halfway, np.nan)
