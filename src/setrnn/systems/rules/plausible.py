"""The default of a model: the best set by a rule among those that the model finds plausible.

The set of highest expected F1 may be one that no document has, such as the labels of two sets of
which either is likely. A set is plausible if it has at least a share of the most probable set's
probability, and agrees with what the label sets of training show without an exception.
"""

# n documents, m of them, K candidates, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setrnn.systems.candidates import Bools, Floats, Ids, Ints, pack_labels, widen
from setrnn.systems.rules.choice import Choice

# Rows (m,) of documents and sets (m, K, S) of them to the value of each set for a rule, (m, K).
Rate = Callable[[Choice, Ints, Ids], Floats]


def keep_plausible(
    choice: Choice, rate: Rate, chosen: Ids, log_probs: Floats
) -> tuple[Ids, Floats]:
    """Replace chosen sets (n, S) that are not plausible by the best candidate that is.

    Returns the sets and their log p, (n,). Where no candidate is plausible, the set stays.
    """
    limits, candidates = choice.limits, choice.candidates
    sound = np.where(choice.fits & _agree(choice, candidates.labels), candidates.log_probs, -np.inf)
    least = sound.max(axis=1) + np.log(limits.plausible)
    is_kept = (log_probs >= least) & _agree(choice, chosen[:, None])[:, 0]
    rows = np.flatnonzero(~is_kept & np.isfinite(least))
    if not len(rows):
        return chosen, log_probs
    values = rate(choice, rows, candidates.labels[rows])
    best = np.where(sound[rows] >= least[rows, None], values, -np.inf).argmax(axis=1)
    sets = widen(chosen, candidates.labels.shape[2]).copy()
    sets[rows] = widen(candidates.labels[rows, best], sets.shape[1])
    log_probs = log_probs.copy()
    log_probs[rows] = candidates.log_probs[rows, best]
    return pack_labels(sets), log_probs


def _agree(choice: Choice, label_sets: Ids) -> Bools:
    """Return which sets (n, K, S) agree with the dependencies of labels, if they are known."""
    if choice.limits.dependencies is None:
        return np.ones(label_sets.shape[:2], dtype=bool)
    return choice.limits.dependencies.hold(label_sets)
