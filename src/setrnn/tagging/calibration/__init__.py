"""What a model learned of its own probabilities, on documents it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.errors import ModelError
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.tagging.calibration.acceptance import Acceptance
from setrnn.tagging.calibration.scaling import Scaling

__all__ = ["Acceptance", "Calibration", "Scaling"]

# n documents, K candidates, S labels of the largest set


@dataclass(frozen=True)
class Calibration:
    """What is fitted outside of training and kept with the model, as calibration.json."""

    n_documents: int  # it was fitted on
    thresholds: Thresholds | None = None  # of the rules micro-f1 and label-f1
    scalings: Mapping[str, Scaling] = field(default_factory=dict)  # by a rule's source
    acceptance: Mapping[str, Acceptance] = field(default_factory=dict)  # by rule

    def n_candidates(self, source: str) -> int:
        """Return how many candidates must be found for calibrated probabilities."""
        return self.scalings[source].n_candidates if source in self.scalings else 1

    def apply(
        self,
        source: str,
        candidates: SetCandidates,
        labels: npt.NDArray[np.int32],
        log_probs: npt.NDArray[np.float64],
    ) -> tuple[SetCandidates, npt.NDArray[np.float64]]:
        """Calibrate the candidates and the predicted sets (n, S), of log-probability (n,).

        A predicted set need not be a candidate. The order of the candidates stays.
        """
        if source not in self.scalings:
            return candidates, log_probs
        scaled, others = self.scalings[source].apply(candidates.log_probs, log_probs[:, None])
        rank = candidates.ranks(labels)
        is_candidate = rank >= 0
        of_rank = scaled[np.arange(len(scaled)), np.maximum(rank, 0)]
        predicted = np.where(is_candidate, of_rank, others[:, 0])
        return SetCandidates(candidates.labels, scaled), predicted

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: the model's calibration.json."""
        return {
            "n_documents": self.n_documents,
            "thresholds": None if self.thresholds is None else self.thresholds.as_dict(),
            "scalings": {source: each.as_dict() for source, each in self.scalings.items()},
            "acceptance": {rule: each.as_dict() for rule, each in self.acceptance.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], place: str = "calibration.json") -> Calibration:
        """Build from plain JSON values; `place` is named where they are damaged."""
        try:
            thresholds = values["thresholds"]
            scalings, acceptance = values.get("scalings", {}), values.get("acceptance", {})
            return cls(
                int(values["n_documents"]),
                None if thresholds is None else Thresholds.from_dict(thresholds),
                {source: Scaling.from_dict(each) for source, each in scalings.items()},
                {rule: Acceptance.from_dict(each) for rule, each in acceptance.items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"{place} is damaged. Train or copy the model again.") from error
