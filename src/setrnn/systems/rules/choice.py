"""What a rule chooses from, and the probability of what it chose."""

# n documents, m of them, K candidates, L labels, G given sets, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    Ints,
    LabelSizeProbs,
    SetCandidates,
)
from setrnn.systems.limits import SetLimits

if TYPE_CHECKING:
    from setrnn.systems.rules.marginal_rules import Thresholds

# Rows (m,) of documents and sets (m, G, S) of them to log p, (m, G).
SetLogProbs = Callable[[Ints, Ids], Floats]


@dataclass(frozen=True)
class Choice:
    """The candidates of a batch of documents, and what else a rule may use.

    Example: one document with three candidates over two labels.

        >>> from setrnn.systems.limits import no_limits
        >>> sets = np.array([[[0, -1], [0, 1], [-1, -1]]], dtype=np.int32)
        >>> candidates = SetCandidates(sets, np.log([[0.5, 0.3, 0.2]]))
        >>> choice = Choice(candidates, no_limits(2), lambda rows, sets: np.zeros((1, 1)))
        >>> choice.marginals
        array([[0.8, 0.3]], dtype=float32)
        >>> choice.fits
        array([[ True,  True,  True]])
    """

    candidates: SetCandidates
    limits: SetLimits  # `no_limits` if there are none
    set_log_probs: SetLogProbs  # asks the system for sets that are not candidates
    thresholds: Thresholds | None = None

    @property
    def n_labels(self) -> int:
        """The number of labels, L."""
        return self.limits.n_labels

    @cached_property
    def marginals(self) -> Floats32:
        """p(label | document), (n, L)."""
        return self.candidates.marginals(self.n_labels)

    @cached_property
    def label_size_probs(self) -> LabelSizeProbs:
        """p(label in the set, size of the set), also for labels that the limits may require."""
        return self.candidates.label_size_probs(self.n_labels, self.limits.smallest_set())

    @cached_property
    def fits(self) -> Bools:
        """Which candidates are within the limits, (n, K)."""
        return self.limits.fit(self.candidates.labels) & (self.candidates.log_probs > -np.inf)

    def log_probs_of(self, label_sets: Ids, rows: Ints | None = None) -> Floats:
        """Return log p of given sets of some documents, (m, G, S): (m, G).

        The system is asked for sets that are not candidates.
        """
        some = self.candidates if rows is None else self.candidates.take(rows)
        log_probs = some.log_probs_of(label_sets)
        unknown = np.flatnonzero(np.isnan(log_probs).any(axis=1))
        if len(unknown):
            asked_rows = unknown if rows is None else rows[unknown]
            asked = self.set_log_probs(asked_rows, label_sets[unknown])
            known = log_probs[unknown]
            log_probs[unknown] = np.where(np.isnan(known), asked, known)
        return log_probs
