"""Rules `set` and `sequence`: the most probable candidate.

Under limits, the best candidate may not fit: then sets that fit and are likely to be probable are
proposed, and the system is asked for their probabilities.
"""

# n documents, m of them, K candidates, G proposed sets, L labels, P labels to choose from,
# S labels of the largest set

from __future__ import annotations

import numpy as np

from setrnn.systems.candidates import Bools, Floats, Floats32, Ids, join_sets, pack_labels, widen
from setrnn.systems.limits import SetLimits
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.marginal_rules import choose_by_margin

N_SEEN = 8  # sets of training to propose
N_REPAIRED = 8  # candidates to propose with changes, however many are shown


def choose_set(choice: Choice) -> Ids:
    """Return the most probable set of each document, (n, S)."""
    return _choose(choice, choice.fits[:, 0])


def choose_sequence(choice: Choice) -> Ids:
    """Return the set of each document's most probable sequence, (n, S)."""
    return _choose(choice, np.asarray(choice.fits.any(axis=1)))


def _choose(choice: Choice, is_settled: Bools) -> Ids:
    """Return the first candidate that fits; for documents not settled, also try proposed sets."""
    candidates = choice.candidates
    first = choice.fits.argmax(axis=1)
    every = np.arange(len(candidates))
    chosen = np.asarray(candidates.labels[every, first])
    rows = np.flatnonzero(~is_settled)
    if not len(rows):
        return chosen
    has_one = choice.fits[rows].any(axis=1)
    found = np.where(has_one, candidates.log_probs[rows, first[rows]], -np.inf)
    best_found = candidates.labels[rows, :N_REPAIRED]
    proposed = propose(choice.limits, best_found, choice.marginals[rows])  # (m, G, S)
    log_probs = choice.log_probs_of(proposed, rows)
    best = log_probs.argmax(axis=1)
    # If no set has a positive probability, the first proposal at least fits.
    is_better = (log_probs.max(axis=1) > found) | (found == -np.inf)
    S = max(chosen.shape[1], proposed.shape[2])
    chosen, proposed = widen(chosen, S), widen(proposed, S)
    better = rows[is_better]
    chosen[better] = proposed[is_better, best[is_better]]
    return chosen


def propose(limits: SetLimits, label_sets: Ids, marginals: Floats32) -> Ids:
    """Return sets that fit, (n, G, S), made from candidates (n, K, S) and marginals (n, L).

    They are the most probable set if labels are independent, the candidates changed as little as
    possible, and sets of training.
    """
    log_odds = _log_odds(marginals)
    found = [choose_by_margin(log_odds, limits)[:, None]]
    found += [repair_sets(limits, each, marginals)[:, None] for each in label_sets.swapaxes(0, 1)]
    if limits.seen is not None:
        found.append(limits.seen.best(log_odds, N_SEEN)[0])
    return pack_labels(join_sets(found))


def repair_sets(limits: SetLimits, label_sets: Ids, marginals: Floats32) -> Ids:
    """Change sets (n, S) as little as possible, so that they fit.

    Forbidden labels are removed and required ones added; then the least likely labels are removed,
    or the most likely ones added, until the size fits.
    """
    margins = marginals - 3.0  # of other labels: added only if they must be
    rows, columns = np.nonzero(label_sets >= 0)
    margins[rows, label_sets[rows, columns]] += 5.0
    return choose_by_margin(margins, limits)


def _log_odds(marginals: Floats32) -> Floats:
    probs = marginals.astype(np.float64).clip(1e-6, 1 - 1e-6)
    return np.asarray(np.log(probs) - np.log1p(-probs))
