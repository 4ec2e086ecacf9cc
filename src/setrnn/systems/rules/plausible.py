"""The default of a model: the best set by a rule that the model also finds plausible.

The set of highest expected F1 may be one that no document has, such as the labels of two sets of
which either is likely. Therefore log p(set) counts beside the value of the rule, and the set must
agree with what the label sets of training show without an exception.
"""

# n documents, K candidates, G sets to choose from, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setrnn.systems.candidates import Floats, Ids, join_sets, pack_labels
from setrnn.systems.rules.choice import Choice

# Sets (n, G, S) of the documents to the value of each for a rule, (n, G).
Rate = Callable[[Choice, Ids], Floats]


def choose_plausible(
    choice: Choice, rate: Rate, chosen: Ids, log_probs: Floats
) -> tuple[Ids, Floats]:
    """Choose between the sets (n, S) that a rule chose, of known log p (n,), and the candidates.

    Returns the sets and their log p. Where no set agrees with the dependencies, the chosen one
    stays.
    """
    limits, candidates = choice.limits, choice.candidates
    sets = join_sets([chosen[:, None], candidates.labels])  # (n, G, S), G = 1 + K
    probs = np.concatenate([log_probs[:, None], candidates.log_probs], axis=1)
    is_sound = np.pad(choice.fits, ((0, 0), (1, 0)), constant_values=True) & (probs > -np.inf)
    if limits.dependencies is not None:
        is_sound &= limits.dependencies.hold(sets)
    values = rate(choice, sets) + limits.plausible * np.where(is_sound, probs, 0.0)
    best = np.where(is_sound, values, -np.inf).argmax(axis=1)
    rows = np.arange(len(sets))
    return pack_labels(sets[rows, best]), probs[rows, best]
