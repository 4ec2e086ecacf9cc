"""What is fitted after training and saved with a model: calibration.json."""

# n documents, L labels, S labels of the largest set

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from types import UnionType
from typing import Any

import numpy as np

from setrnn.errors import ModelError
from setrnn.systems.candidates import Floats, Floats32, Ids
from setrnn.systems.limits import PLAUSIBLE
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.tagging.trust.acceptance import Acceptance, LabelAcceptance, Shown, as_plain
from setrnn.tagging.trust.labels import LabelCurves
from setrnn.tagging.trust.sets import Scaling

N_HALVINGS = 40
Target = tuple[float, float]  # an accuracy, and the confidence that it is reached


@dataclass(frozen=True)
class Calibration:
    """All that is fitted after training and saved with the model, as calibration.json."""

    n_documents: int  # that it was fitted on
    thresholds: Thresholds | None = None  # of the rules micro-f1 and label-f1
    # By a rule's source; by the rule itself if it has weights of its own in a mixture.
    scalings: Mapping[str, Scaling] = field(default_factory=dict)
    acceptance: Mapping[str, Acceptance] = field(default_factory=dict)  # by rule
    label_curves: LabelCurves | None = None
    label_acceptance: LabelAcceptance | None = None
    shown: Shown | None = None
    share_trained_on: float = 0.0  # of these documents; 0 if the model was trained on few
    plausible: float = PLAUSIBLE  # the weight of log p(set) in default predictions

    @property
    def targets(self) -> dict[str, Target]:
        """The target accuracy of the accepted predictions by each rule, and its confidence."""
        return {rule: (each.target, each.confidence) for rule, each in self.acceptance.items()}

    def scaling_of(self, rule: str, source: str) -> Scaling | None:
        """Return the scaling of a rule: its own, or that of its source; None if there is none."""
        return self.scalings.get(rule, self.scalings.get(source))

    def label_probs(self, probs: Floats32, labels: Ids | None = None) -> Floats32:
        """Calibrate p(label | document), (n, L), or those of given labels (n, S)."""
        return probs if self.label_curves is None else self.label_curves(probs, labels)

    def own_probs(self, probs: Floats, labels: Ids) -> Floats:
        """Return the least own probability that is calibrated to each (E,); 2 if none is."""
        low, high = np.zeros(len(probs)), np.full(len(probs), 2.0)
        for _ in range(N_HALVINGS):  # of a curve that never falls
            middle = (low + high) / 2
            is_enough = (
                self.label_probs(np.minimum(middle, 1.0).astype(np.float32), labels) >= probs
            )
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        return np.where(probs > 0, high, 0.0)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: the model's calibration.json."""
        return as_plain(self)

    @classmethod
    def from_dict(
        cls,
        values: Mapping[str, Any],
        n_labels: int | None = None,
        place: str = "calibration.json",
    ) -> Calibration:
        """Build from plain JSON values; raise ModelError if they make no calibration.

        Args:
            values: those of `as_dict`.
            n_labels: of the model; None to accept any number.
            place: the file to name in an error.
        """
        try:
            json.dumps(values, allow_nan=False)
            found: Calibration = _build(cls, values)
            of_labels = [
                *([found.thresholds.by_label] if found.thresholds else ()),
                *([found.label_curves.offsets] if found.label_curves else ()),
                *([found.label_acceptance.thresholds] if found.label_acceptance else ()),
            ]
            if n_labels is not None and any(each.shape != (n_labels,) for each in of_labels):
                raise ValueError("it is for another number of labels")
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(
                f"{place} is damaged. Remove it, and calibrate the model again."
            ) from error
        return found


def _build(kind: Any, value: Any) -> Any:  # noqa: ANN401 (a type, and JSON values)
    """Build a value of a type, such as a dataclass with arrays; raise TypeError for another one."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is UnionType:  # a type or None
        return None if value is None else _build(parts[0], value)
    if is_dataclass(kind) or origin is Mapping:
        if not isinstance(value, dict):
            raise TypeError(f"{value!r:.40} is not an object")
        if origin is Mapping:
            return {name: _build(parts[1], each) for name, each in value.items()}
        types = typing.get_type_hints(kind)
        if value.keys() != types.keys():
            raise TypeError(f"it has {list(value)!r:.80}")
        return kind(**{name: _build(types[name], each) for name, each in value.items()})
    if origin is np.ndarray:
        if not isinstance(value, list):
            raise TypeError(f"{value!r:.40} is not a list")
        return np.array([_build(float, each) for each in value])
    wanted = (int, float) if kind is float else kind
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise TypeError(f"{value!r:.40} is not of {kind}")
    return kind(value)
