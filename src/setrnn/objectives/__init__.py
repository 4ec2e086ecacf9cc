"""Training objectives: which orders of a label set are scored, and how they are combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from setrnn.errors import ConfigError, nearest_name
from setrnn.model.interfaces import Encoding
from setrnn.objectives import (
    best_order,
    exact_set,
    fixed_order,
    random_order,
    sampled_order,
    set_probability,
)
from setrnn.objectives.independent_labels import independent_labels
from setrnn.objectives.objective import LabelSets, Objective

# decoder, encoding, label sets, K: a value (B,) to be maximised
SetObjective = Callable[[Any, Encoding, LabelSets, int], Tensor]

OBJECTIVES: dict[str, Objective] = {
    "fixed-order": fixed_order.OBJECTIVE,
    "random-order": random_order.OBJECTIVE,
    "sampled-order": sampled_order.OBJECTIVE,
    "best-order": best_order.OBJECTIVE,
    "set-probability": set_probability.OBJECTIVE,
}
# Of decoders that know no orders, or forget them.
SET_OBJECTIVES: dict[str, SetObjective] = {
    "exact-set-probability": exact_set.objective,
    "independent-labels": independent_labels,
}


def find_objective(name: str) -> SetObjective:
    """Return an objective by its name."""
    known: dict[str, SetObjective] = {**OBJECTIVES, **SET_OBJECTIVES}
    if name not in known:
        raise ConfigError(f"There is no objective '{name}'. {nearest_name(name, known)}")
    return known[name]


__all__ = [
    "OBJECTIVES",
    "SET_OBJECTIVES",
    "LabelSets",
    "Objective",
    "SetObjective",
    "find_objective",
]
