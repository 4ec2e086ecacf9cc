"""Training objectives, one per file. To add one, add a line to OBJECTIVES."""

from __future__ import annotations

from setrnn.errors import ConfigError, nearest_name
from setrnn.objectives import (
    best_order,
    exact_set,
    fixed_order,
    greedy_order,
    independent_labels,
    optimal_completion,
    random_order,
    sampled_order,
    set_distribution,
    set_probability,
    set_reward,
)
from setrnn.objectives.objective import LabelSets, Objective, OrderObjective, Orders

OBJECTIVES: dict[str, Objective] = {
    # The paper's: they score orders of each set.
    "fixed-order": fixed_order.OBJECTIVE,
    "random-order": random_order.OBJECTIVE,
    "sampled-order": sampled_order.OBJECTIVE,
    "best-order": best_order.OBJECTIVE,
    "set-probability": set_probability.OBJECTIVE,
    # For decoders that ignore the order, and for those without one.
    "exact-set-probability": exact_set.objective,
    "independent-labels": independent_labels.objective,
    # Of later papers.
    "optimal-completion": optimal_completion.objective,
    "set-reward": set_reward.objective,
    "greedy-order": greedy_order.OBJECTIVE,
    # For a student of any of these decoders.
    "set-distribution": set_distribution.objective,
}


def find_objective(name: str) -> Objective:
    """Return an objective by its name."""
    if name not in OBJECTIVES:
        raise ConfigError(f"There is no objective '{name}'. {nearest_name(name, OBJECTIVES)}")
    return OBJECTIVES[name]


__all__ = ["OBJECTIVES", "LabelSets", "Objective", "OrderObjective", "Orders", "find_objective"]
