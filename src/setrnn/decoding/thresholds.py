"""Thresholds on p(label | document): one for all labels, and one a label."""

# n documents, L labels

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


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
    """Choose the thresholds by documents whose labels are known: both (n, L)."""
    grid = np.linspace(0.05, 0.95, 19)
    scores = [_micro_f1(marginals >= each, is_label) for each in grid]
    common = float(grid[int(np.argmax(scores))])
    return Thresholds(common, np.full(is_label.shape[1], common))


def _micro_f1(is_predicted: npt.NDArray[np.bool_], is_label: npt.NDArray[np.bool_]) -> float:
    both = int((is_predicted & is_label).sum())
    return 2 * both / max(int(is_predicted.sum()) + int(is_label.sum()), 1)
