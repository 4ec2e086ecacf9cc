"""What is fitted after training and saved with a model: calibration.json."""

# n documents, L labels, S labels of the largest set

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setrnn.errors import ModelError
from setrnn.systems.candidates import Floats32, Ids
from setrnn.systems.limits import PLAUSIBLE
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.tagging.trust.acceptance import Acceptance, LabelAcceptance, as_plain
from setrnn.tagging.trust.labels import LabelCurves
from setrnn.tagging.trust.sets import Isotonic, Scaling

MIN_DOCUMENTS = 100  # to calibrate on


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
    share_trained_on: float = 0.0  # of these documents; 0 if the model was trained on few
    plausible: float = PLAUSIBLE  # the weight of log p(set) in default predictions

    def scaling_of(self, rule: str, source: str) -> Scaling | None:
        """Return the scaling of a rule: its own, or that of its source; None if there is none."""
        return self.scalings.get(rule, self.scalings.get(source))

    def label_probs(self, probs: Floats32, labels: Ids | None = None) -> Floats32:
        """Calibrate p(label | document), (n, L), or those of given labels (n, S)."""
        return probs if self.label_curves is None else self.label_curves(probs, labels)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: the model's calibration.json."""
        return dict(as_plain(self))

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
            found = cls(
                int(values["n_documents"]),
                _build(Thresholds, values["thresholds"]),
                {
                    key: Scaling(**{**each, "isotonic": _build(Isotonic, each["isotonic"])})
                    for key, each in values["scalings"].items()
                },
                {key: Acceptance(**each) for key, each in values["acceptance"].items()},
                _build(LabelCurves, values["label_curves"]),
                _build(LabelAcceptance, values["label_acceptance"]),
                values["share_trained_on"],
                float(values["plausible"]),
            )
            of_labels = [
                *([found.thresholds.by_label] if found.thresholds else ()),
                *([found.label_curves.offsets] if found.label_curves else ()),
                *([found.label_acceptance.thresholds] if found.label_acceptance else ()),
            ]
            if n_labels is not None and any(each.shape != (n_labels,) for each in of_labels):
                raise ValueError("it is for another number of labels")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(
                f"{place} is damaged. Remove it, and calibrate the model again."
            ) from error
        return found


def _build(kind: type[Any], values: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
    """Build a dataclass from JSON values, with arrays for lists."""
    if values is None:
        return None
    arrays = {name: np.array(each) for name, each in values.items() if isinstance(each, list)}
    return kind(**{**values, **arrays})
