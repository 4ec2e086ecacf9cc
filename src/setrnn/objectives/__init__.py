"""Training objectives: which orders of a label set are scored, and how they are combined."""

from __future__ import annotations

from setrnn.errors import ConfigError, nearest_name
from setrnn.objectives import (
    best_order,
    exact_set,
    fixed_order,
    random_order,
    sampled_order,
    set_probability,
)
from setrnn.objectives.objective import LabelSets, ObjectiveFunction

OBJECTIVES: dict[str, ObjectiveFunction] = {
    "fixed-order": fixed_order.OBJECTIVE,
    "random-order": random_order.OBJECTIVE,
    "sampled-order": sampled_order.OBJECTIVE,
    "best-order": best_order.OBJECTIVE,
    "set-probability": set_probability.OBJECTIVE,
    "exact-set-probability": exact_set.objective,
}


def find_objective(name: str) -> ObjectiveFunction:
    """Return an objective by its name."""
    if name not in OBJECTIVES:
        raise ConfigError(f"There is no objective '{name}'. {nearest_name(name, OBJECTIVES)}")
    return OBJECTIVES[name]


__all__ = ["OBJECTIVES", "LabelSets", "ObjectiveFunction", "find_objective"]
