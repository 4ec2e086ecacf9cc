"""Rules `set` and `sequence`: the most probable candidate.

Under limits, the best candidate may not fit: then sets that fit and are likely to be probable are
proposed, and the system is asked for their probabilities.
"""

# n documents, m of them, K candidates, G proposed sets, L labels, P labels to choose from,
# S labels of the largest set

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setrnn.metrics import top_labels
from setrnn.systems.candidates import Bools, Floats, Floats32, Ids, join_sets, pack_labels, widen
from setrnn.systems.limits import SetLimits
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.closed_sets import propose_closed

N_SEEN, N_ONLY_SEEN = 8, 16  # sets of training to propose
N_REPAIRED = 16  # candidates to propose with changes, however many are shown
NEAR_SIZES = np.arange(-2, 3)  # around the expected size


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
    """Return sets that fit, (n, G, S), made from candidates (n, K, S) and marginals (n, L)."""
    if limits.only_seen and limits.seen is not None:
        return limits.seen.best(_log_odds(marginals), N_ONLY_SEEN)[0]
    if limits.closure is not None:
        # Without other limits, what is found agrees with labels that are known.
        others = replace(limits, closure=None)
        given = label_sets if others.is_open else propose(others, label_sets, marginals)
        return propose_closed(limits, limits.closure, given, _log_odds(marginals))
    found = [make_likely_sets(limits, marginals), repair_sets(limits, label_sets, marginals)]
    if limits.seen is not None:
        found.append(limits.seen.best(_log_odds(marginals), N_SEEN)[0])
    return join_sets(found)


def make_likely_sets(limits: SetLimits, marginals: Floats32) -> Ids:
    """Return the labels of the largest marginals, in sizes near the expected one: (n, 5, S)."""
    expected = marginals[:, limits.is_allowed].sum(axis=1).round().astype(np.int64)
    # the expected size first
    sizes = expected[:, None] + NEAR_SIZES[np.argsort(np.abs(NEAR_SIZES), kind="stable")]
    sizes = sizes.clip(limits.min_labels, limits.max_labels)
    largest = int(sizes.max(initial=0))
    ranked = top_labels(limits.rank(marginals), largest)  # (n, S)
    is_in = np.arange(largest) < sizes[:, :, None]
    return pack_labels(np.where(is_in, ranked[:, None], -1).astype(np.int32))


def repair_sets(limits: SetLimits, label_sets: Ids, marginals: Floats32) -> Ids:
    """Change sets (n, K, S) as little as possible, so that they fit.

    Forbidden labels are removed and required ones added; then the least likely labels are removed,
    or the most likely ones added, until the size fits.
    """
    n, K, S = label_sets.shape
    fill = top_labels(limits.rank(marginals), limits.min_labels)  # required ones included
    fill = np.broadcast_to(fill[:, None].astype(np.int32), (n, K, limits.min_labels))
    pool = np.concatenate([label_sets, fill], axis=2)  # (n, K, P)
    probs = np.take_along_axis(marginals[:, None], np.maximum(pool, 0), axis=2).astype(np.float64)
    rank = np.where(np.arange(pool.shape[2]) < S, probs + 2, probs)  # labels of the set first
    rank[~limits.is_allowed[pool] | (pool < 0)] = -np.inf
    is_required = np.isin(pool, limits.required)
    rank[is_required] = 4
    # labels of the set are not added again
    is_own = (fill[..., None] == label_sets[:, :, None]).any(axis=3)
    rank[:, :, S:][is_own] = -np.inf
    order = np.argsort(-rank, axis=2, kind="stable")[:, :, : limits.max_labels]
    rank = np.take_along_axis(rank, order, axis=2)
    is_in = (rank >= 2) | ((np.arange(order.shape[2]) < limits.min_labels) & (rank >= 0))
    return pack_labels(np.where(is_in, np.take_along_axis(pool, order, axis=2), -1))


def _log_odds(marginals: Floats32) -> Floats:
    probs = marginals.astype(np.float64).clip(1e-6, 1 - 1e-6)
    return np.asarray(np.log(probs) - np.log1p(-probs))
