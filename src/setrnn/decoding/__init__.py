"""Prediction rules: from the likely sets of a document to the one that is predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setrnn.decoding import most_probable
from setrnn.decoding.candidates import SetCandidates
from setrnn.errors import ConfigError, nearest_name


@dataclass(frozen=True)
class Rule:
    """How one set is chosen for each document."""

    source: str  # what it chooses from: "sets", or the sets of the best "sequences"
    # labels (n, S), -1 fills up, and the log-probability (n,) of each document's predicted set
    choose: Callable[[SetCandidates], tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]]


RULES: dict[str, Rule] = {
    "set": Rule("sets", most_probable.choose),
    "sequence": Rule("sequences", most_probable.choose),
}


def find_rule(name: str) -> Rule:
    """Return a rule by its name."""
    if name not in RULES:
        raise ConfigError(f"There is no rule '{name}'. {nearest_name(name, RULES)}")
    return RULES[name]


__all__ = ["RULES", "Rule", "SetCandidates", "find_rule"]
