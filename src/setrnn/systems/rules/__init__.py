"""Prediction rules: from the likely sets of a document to the one that is predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setrnn.errors import ConfigError, nearest_name
from setrnn.systems.candidates import SetCandidates, pack_labels
from setrnn.systems.limits import Limits, SetLimits, no_limits
from setrnn.systems.rules import expected_f1, marginal_rules, most_probable
from setrnn.systems.rules.choice import Choice

# How many sets a rule asks for that goes by the whole distribution; systems whose sets cost
# nothing give more, and those that know the distribution better need none.
MANY_SETS = 16


@dataclass(frozen=True)
class Rule:
    """How one set is chosen for each document."""

    source: str  # what it chooses from: "sets", or the sets of the best "sequences"
    choose: Callable[[Choice], npt.NDArray[np.int32]]  # the labels (n, S); -1 fills up
    needs_best_only: bool = False  # not the whole distribution
    needs_thresholds: bool = False

    def n_sets(self, top: int, limits: SetLimits) -> int:
        """Return how many candidates to ask for, where `top` sets are to be shown."""
        return top if self.needs_best_only and limits.is_open else max(top, MANY_SETS)


RULES: dict[str, Rule] = {
    "set": Rule("sets", most_probable.choose_set, needs_best_only=True),
    "sequence": Rule("sequences", most_probable.choose_sequence, needs_best_only=True),
    "f1": Rule("sets", expected_f1.choose),
    "hamming": Rule("sets", marginal_rules.choose_over_half),
    "micro-f1": Rule("sets", marginal_rules.choose_by_common_threshold, needs_thresholds=True),
    "label-f1": Rule("sets", marginal_rules.choose_by_own_thresholds, needs_thresholds=True),
}


def find_rule(name: str) -> Rule:
    """Return a rule by its name."""
    if name not in RULES:
        raise ConfigError(f"There is no rule '{name}'. {nearest_name(name, RULES)}")
    return RULES[name]


def choose_sets(
    rule: Rule, choice: Choice
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Choose a set for each document: its labels (n, S), packed, and its log-probability (n,)."""
    labels = pack_labels(rule.choose(choice))
    return labels, choice.log_probs_of(labels[:, None])[:, 0]


__all__ = [
    "MANY_SETS",
    "RULES",
    "Choice",
    "Limits",
    "Rule",
    "SetCandidates",
    "SetLimits",
    "choose_sets",
    "find_rule",
    "no_limits",
]
