"""What a rule chooses from, and the probability of what it chose."""

# n documents, K candidates, m of the documents, G given sets, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from setrnn.systems.candidates import SetCandidates
from setrnn.systems.limits import SetLimits
from setrnn.systems.rules.thresholds import Thresholds

# log p of given sets (m, G, S) of the documents in these rows (m,): (m, G)
SetLogProbs = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int32]], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Choice:
    """The candidates of some documents, and all else that a rule may ask."""

    candidates: SetCandidates
    limits: SetLimits  # those that only name the number of labels, where there are none
    set_log_probs: SetLogProbs
    thresholds: Thresholds | None = None

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return self.limits.n_labels

    @cached_property
    def marginals(self) -> npt.NDArray[np.float32]:
        """p(label | document), (n, L)."""
        return self.candidates.marginals(self.n_labels)

    @cached_property
    def fits(self) -> npt.NDArray[np.bool_]:
        """Which candidates are within the limits, (n, K)."""
        return self.limits.fit(self.candidates.labels) & (self.candidates.log_probs > -np.inf)

    def log_probs_of(
        self, label_sets: npt.NDArray[np.int32], rows: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of some documents, (m, G, S): (m, G).

        Those the candidates do not know are asked of the system.
        """
        rows = np.arange(len(self.candidates)) if rows is None else rows
        log_probs = self.candidates.take(rows).log_probs_of(label_sets)
        unknown = np.flatnonzero(np.isnan(log_probs).any(axis=1))
        if len(unknown):
            asked = self.set_log_probs(rows[unknown], label_sets[unknown])
            known = log_probs[unknown]
            log_probs[unknown] = np.where(np.isnan(known), asked, known)
        return log_probs
