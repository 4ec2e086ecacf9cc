"""What is fitted on documents outside of training and kept with the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from setrnn.decoding.thresholds import Thresholds


@dataclass(frozen=True)
class Calibration:
    """What a model learned of its own probabilities."""

    n_documents: int  # it was fitted on
    thresholds: Thresholds | None = None  # of the rules micro-f1 and label-f1

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: the model's calibration.json."""
        return {
            "n_documents": self.n_documents,
            "thresholds": None if self.thresholds is None else self.thresholds.as_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Build from plain JSON values."""
        thresholds = values["thresholds"]
        return cls(
            int(values["n_documents"]),
            None if thresholds is None else Thresholds.from_dict(thresholds),
        )
