"""What is fitted after training and saved with a model: calibration.json."""

# n documents, S labels of the largest set

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setrnn.errors import ModelError
from setrnn.systems.candidates import Floats, Ids, SetCandidates
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.tagging.trust.acceptance import Acceptance, LabelAcceptance, as_plain
from setrnn.tagging.trust.labels import LabelCurves
from setrnn.tagging.trust.sets import Isotonic, Scaling

MIN_DOCUMENTS = 100  # to calibrate on
HINT = "Remove it, and calibrate the model again."


@dataclass(frozen=True)
class Calibration:
    """All that is fitted after training and saved with the model, as calibration.json."""

    n_documents: int  # that it was fitted on; 0 if there are only targets, of the model before
    thresholds: Thresholds | None = None  # of the rules micro-f1 and label-f1
    # By a rule's source; by the rule itself if it has weights of its own in a mixture.
    scalings: Mapping[str, Scaling] = field(default_factory=dict)
    acceptance: Mapping[str, Acceptance] = field(default_factory=dict)  # by rule
    label_curves: LabelCurves | None = None
    label_acceptance: LabelAcceptance | None = None
    share_trained_on: float = 0.0  # of these documents; 0 if the model was trained on few

    @property
    def is_fitted(self) -> bool:
        """Whether it was fitted on documents."""
        return self.n_documents > 0

    def key_of(self, rule: str, source: str) -> str:
        """Return which scaling is that of a rule: its own, or that of its source."""
        return rule if rule in self.scalings else source

    def n_candidates(self, key: str) -> int:
        """Return how many candidates calibrated probabilities need."""
        return self.scalings[key].n_candidates if key in self.scalings else 1

    def apply(
        self, key: str, candidates: SetCandidates, labels: Ids, log_probs: Floats
    ) -> tuple[SetCandidates, Floats]:
        """Calibrate the candidates and the predicted sets (n, S) with log-probabilities (n,).

        A predicted set need not be a candidate. The order of the candidates does not change.
        """
        if key not in self.scalings:
            return candidates, log_probs
        scaled, others = self.scalings[key].apply(candidates.log_probs, log_probs[:, None])
        rank = candidates.ranks(labels)
        is_candidate = rank >= 0
        of_rank = scaled[np.arange(len(scaled)), np.maximum(rank, 0)]
        predicted = np.where(is_candidate, of_rank, others[:, 0])
        return SetCandidates(candidates.labels, scaled), predicted

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: the model's calibration.json."""
        return dict(as_plain(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], place: str = "calibration.json") -> Calibration:
        """Build from plain JSON values; `place` is the file to name if they are damaged."""
        if name := _find_not_finite(values):
            raise ModelError(
                f"{place}: '{name}' holds values that are not finite numbers (NaN or infinite). "
                f"{HINT}"
            )
        try:
            scalings, acceptance = values.get("scalings", {}), values.get("acceptance", {})
            return cls(
                n_documents=int(values["n_documents"]),
                thresholds=_read(Thresholds, values["thresholds"]),
                scalings={key: _read_scaling(each) for key, each in scalings.items()},
                acceptance={key: Acceptance(**each) for key, each in acceptance.items()},
                label_curves=_read(LabelCurves, values.get("label_curves")),
                label_acceptance=_read(LabelAcceptance, values.get("label_acceptance")),
                share_trained_on=float(values.get("share_trained_on", 0.0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ModelError(f"{place} is damaged. {HINT}") from error

    def check_labels(self, n_labels: int, place: str = "calibration.json") -> None:
        """Raise ModelError if what it has for each label is for another number of labels."""
        curves, accepted = self.label_curves, self.label_acceptance
        of_labels = (
            None if self.thresholds is None else self.thresholds.by_label,
            None if curves is None else curves.offsets,
            None if accepted is None else accepted.thresholds,
        )
        for each in of_labels:
            if each is not None and np.shape(each) != (n_labels,):
                raise ModelError(
                    f"{place} has thresholds of shape {np.shape(each)} for {n_labels:,} labels. "
                    f"{HINT}"
                )


def _read_scaling(values: Mapping[str, Any]) -> Scaling:
    return Scaling(**{**values, "isotonic": _read(Isotonic, values["isotonic"])})


def _read(kind: type[Any], values: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
    """Build a dataclass from JSON values, with arrays for lists and floats for numbers."""
    if values is None:
        return None
    read = {
        name: np.array(each, dtype=bool if name.startswith("is_") else np.float64)
        for name, each in values.items()
    }
    return kind(**{name: each if each.ndim else float(each) for name, each in read.items()})


def _find_not_finite(values: Any, name: str = "") -> str | None:  # noqa: ANN401 (JSON values)
    """Return the name of the first value that is NaN or infinite, with the names around it."""
    if isinstance(values, Mapping):
        found = (_find_not_finite(each, f"{name}.{key}") for key, each in values.items())
        return next((each for each in found if each), None)
    numbers = values if isinstance(values, list) else [values]
    is_finite = all(math.isfinite(each) for each in numbers if isinstance(each, float))
    return None if is_finite else name.removeprefix(".")
