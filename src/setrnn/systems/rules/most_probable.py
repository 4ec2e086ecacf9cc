"""Rules `set` and `sequence`: the most probable of the candidates."""

# n documents, K candidates, G further sets, S labels of the largest set

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from setrnn.systems.candidates import widened
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.proposals import propose


def choose_set(choice: Choice) -> npt.NDArray[np.int32]:
    """Return each document's most probable set, (n, S)."""
    return _choose(choice, choice.fits[:, 0])


def choose_sequence(choice: Choice) -> npt.NDArray[np.int32]:
    """Return the set of each document's most probable sequence, (n, S)."""
    return _choose(choice, np.asarray(choice.fits.any(axis=1)))


def _choose(choice: Choice, is_settled: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Take the first candidate that fits; where that settles it not, look at further sets."""
    candidates = choice.candidates
    first = choice.fits.argmax(axis=1)
    every = np.arange(len(candidates))
    chosen = np.asarray(candidates.labels[every, first])
    rows = np.flatnonzero(~is_settled)
    if not len(rows):
        return chosen
    has_one = choice.fits[rows].any(axis=1)
    found = np.where(has_one, candidates.log_probs[rows, first[rows]], -np.inf)
    further = propose(choice.limits, candidates.labels[rows], choice.marginals[rows])  # (m, G, S)
    log_probs = choice.log_probs_of(further, rows)
    best = log_probs.argmax(axis=1)
    # Where nothing has a chance, the first proposal at least fits.
    is_better = (log_probs.max(axis=1) > found) | (found == -np.inf)
    S = max(chosen.shape[1], further.shape[2])
    chosen, further = widened(chosen, S), widened(further, S)
    better = rows[is_better]
    chosen[better] = further[is_better, best[is_better]]
    return chosen
