"""Rule `f1`: the set of highest expected instance-F1 (the GFM of Waegeman et al. 2014).

The F1 of a set h for the true set y is 2 |h & y| / (|h| + |y|). Its expectation is the sum over
the labels of h of W[label, |h|] = sum over sizes z of 2 p(label in y, |y| = z) / (z + |h|). The
best set of k labels has the k largest of W[:, k], and the best set is the best over all k. The
expected F1 of the empty set is p(empty).
"""

# n documents, M labels that matter to a document, Z sizes of sets, S labels of the largest set

from __future__ import annotations

from functools import partial

import numpy as np

from setrnn.systems.candidates import Floats, Ids, LabelSizeProbs, list_columns
from setrnn.systems.closure import close_sets
from setrnn.systems.limits import SeenSets, SetLimits
from setrnn.systems.rules.choice import Choice


def choose(choice: Choice) -> Ids:
    """Return the set of highest expected F1 per document, (n, S): exact, given its candidates.

    Of closed sets, it is the best one found.
    """
    limits = choice.limits
    if not choice.n_labels:
        return np.full((len(choice.candidates), 1), -1, dtype=np.int32)
    probs = choice.label_size_probs
    if limits.only_seen and limits.seen is not None:
        return _find_best_seen(probs, limits.seen, choice.n_labels)
    found = find_best(probs, limits)
    return close_sets(found, limits, partial(rate, choice), choice.candidates.labels)


def rate(choice: Choice, label_sets: Ids) -> Floats:
    """Return the expected F1 of sets (n, G, S): (n, G)."""
    table = choice.label_size_probs
    n, M = table.labels.shape
    place = np.full((n, choice.n_labels + 1), M)  # -1 reads the last
    row, column = np.nonzero(table.labels >= 0)
    place[row, table.labels[row, column]] = column
    places = place[np.arange(n)[:, None, None], label_sets]  # (n, G, S)
    sizes = (label_sets >= 0).sum(axis=2)
    found = np.where(sizes == 0, table.empty[:, None], 0.0)
    for k in np.unique(sizes[sizes > 0]).tolist():
        # A label that does not matter adds nothing.
        gain = np.pad(gains(table.probs, k), ((0, 0), (0, 1)))
        document, rank = np.nonzero(sizes == k)
        found[document, rank] = gain[document[:, None], places[document, rank]].sum(axis=1)
    return found


def gains(probs: Floats, n_chosen: int) -> Floats:
    """Return what each label (n, M, Z) adds to the expected F1 of a set of `n_chosen`: (n, M)."""
    sizes = np.arange(1, probs.shape[2] + 1)
    return np.asarray(probs @ (2.0 / (sizes + n_chosen)).astype(probs.dtype))


def find_best(probs: LabelSizeProbs, limits: SetLimits) -> Ids:
    """Return the set of highest expected F1 of each document, (n, S)."""
    n, M = probs.labels.shape
    is_label = probs.labels >= 0
    is_allowed = np.append(limits.is_allowed, False)[probs.labels]  # -1 reads the last
    is_required = np.isin(probs.labels, limits.required) & is_label
    best = probs.empty.copy() if limits.min_labels == 0 else np.full(n, -np.inf)
    is_chosen = np.zeros((n, M), dtype=bool)
    rows, of_rows = np.arange(n), probs.probs  # documents whose best set may be larger
    for k in range(max(limits.min_labels, 1), min(limits.max_labels, M) + 1):
        gain = gains(of_rows, k)
        may_gain = gain.sum(axis=1) > best[rows]  # an upper bound, descending in k
        if not may_gain.all():
            rows, of_rows, gain = rows[may_gain], of_rows[may_gain], gain[may_gain]
        gain[~is_allowed[rows]] = -np.inf
        ranked = np.where(is_required[rows], np.inf, gain)
        if limits.groups is not None:
            ranked = limits.groups.rank(ranked, probs.labels[rows])
            gain[ranked == -np.inf] = -np.inf
        top = np.argpartition(-ranked, k - 1, axis=1)[:, :k]
        value = np.take_along_axis(gain, top, axis=1).sum(axis=1)
        is_better = value > best[rows]
        better = rows[is_better]
        best[better] = value[is_better]
        is_chosen[better] = False
        is_chosen[better[:, None], top[is_better]] = True
    places = list_columns(is_chosen)
    chosen = np.take_along_axis(probs.labels, np.maximum(places, 0), axis=1)
    return np.where(places < 0, -1, chosen).astype(np.int32)


def _find_best_seen(probs: LabelSizeProbs, seen: SeenSets, n_labels: int) -> Ids:
    n, M = probs.labels.shape
    document, place = np.nonzero(probs.labels >= 0)
    best, chosen = np.full(n, -np.inf), np.full((n, seen.labels.shape[1]), -1, dtype=np.int32)
    for k, of_size in seen.by_size().items():
        values = np.zeros((n, n_labels))
        values[document, probs.labels[document, place]] = gains(probs.probs, k)[document, place]
        found, totals = of_size.best(values, 1)
        value = probs.empty if k == 0 else totals[:, 0]
        better = value > best
        best[better] = value[better]
        chosen[better] = -1
        chosen[better, : found.shape[2]] = found[better, 0]
    return chosen
