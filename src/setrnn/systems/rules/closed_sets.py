"""The best closed set, where the set that a rule prefers is not closed in the hierarchy.

A set that is the best of all is also the best of the closed ones if it is closed. Only for the
other documents is the best closed set looked for.
"""

# n documents, m of them, K candidates, L labels, M labels to choose from, Z sizes, S labels of the
# largest set, T ways to rate labels, W sizes to try

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    Ints,
    SetCandidates,
    join_sets,
    pack_labels,
    rank_sets,
    widen,
)
from setrnn.systems.closure import Closure
from setrnn.systems.limits import SetLimits, set_keys
from setrnn.systems.rules.choice import SetLogProbs

# If the number of labels is limited, the labels of the largest values are looked at, and those
# above them.
N_LOOKED_AT = 256
N_CHANGED = 16  # candidates that are closed and pruned in a completion
# Branches for labels with several parents; then the best set so far is taken. Work is counted in
# numbers, of which a call of a function takes the time of CALL.
LEAST_BRANCHES, MOST_BRANCHES = 16, 500
MOST_WORK, CALL = 2**25, 4_000


def close_by_sum(chosen: Ids, values: npt.NDArray[Any], limits: SetLimits) -> Ids:
    """Return the sets (n, S) of the largest sums of values (n, L) that are closed.

    Those chosen have the largest sums of all sets that fit otherwise.
    """
    closure = limits.closure
    if closure is None:
        return chosen
    rows = np.flatnonzero(~closure.fit(chosen))
    sets = [_find_largest_sum(values[row], limits, closure) for row in rows]
    return replace_rows(chosen, rows, sets)


def _find_largest_sum(values: npt.NDArray[Any], limits: SetLimits, closure: Closure) -> list[int]:
    """Return the closed set of the largest sum of values (L,)."""
    required, sizes = limits.required.tolist(), None
    if limits.has_sizes:
        ranked = np.where(limits.is_allowed, values, -np.inf)
        wanted = np.argsort(-ranked, kind="stable")[:N_LOOKED_AT]
        wanted = wanted[limits.is_allowed[wanted]]
        labels = _with_above(closure, [*wanted.tolist(), *limits.smallest_set()])
        most = min(limits.max_labels, len(labels))
        sizes = [(0, size) for size in range(limits.min_labels, most + 1)]
    else:
        wanted = np.flatnonzero((values >= 0) & limits.is_allowed)
        labels = _with_above(closure, [*wanted.tolist(), *required])
    found = find_best_closed(
        closure, labels, values[None, labels].astype(np.float64), sizes, required
    )
    return limits.smallest_set() if found is None else found[2]


def find_largest_f1(
    labels: Ids, probs: Floats, empty: float, chosen: Ids, limits: SetLimits, closure: Closure
) -> list[int]:
    """Return the closed set of highest expected F1 of a document.

    Its labels (M,), padded with -1, have the probabilities (M, Z) with each size of the set. The
    chosen set (S,) is the best of those that need not be closed.
    """
    of_label = dict(zip(labels.tolist(), probs, strict=True))
    wanted = [label for label in of_label if label >= 0 and limits.is_allowed[label]]
    own = _with_above(closure, [*wanted, *limits.smallest_set()])
    nothing = np.zeros(probs.shape[1])
    rows = np.array([of_label.get(label, nothing) for label in own])  # (M, Z)
    ks = np.arange(max(limits.min_labels, 1), min(limits.max_labels, len(own)) + 1)
    weights = 2.0 / (np.arange(1, rows.shape[1] + 1)[:, None] + ks)  # (Z, sizes)
    gains = (rows @ weights).T  # (sizes, M)
    # Only sizes are tried of which some set, closed or not, is better than a closed one.
    near = [closure.close(chosen[None])[0], closure.prune(chosen[None])[0]]
    fitting = [each[each >= 0].tolist() for each in near if limits.fit(each[None, None])[0, 0]]
    known: list[list[int]] = [limits.smallest_set(), *fitting]
    values = [_rate(each, own, gains, ks, empty) for each in known]
    most = np.cumsum(-np.sort(-gains, axis=1), axis=1)[np.arange(len(ks)), ks - 1]
    is_better = most > max(values)
    sizes = [(row, int(k)) for row, k in enumerate(ks[is_better])]
    found = find_best_closed(closure, own, gains[is_better], sizes, limits.required.tolist())
    if found is None or found[0] <= max(values):
        return known[int(np.argmax(values))]
    return found[2]


def _rate(
    chosen: Sequence[int], labels: Sequence[int], gains: Floats, ks: Ints, empty: float
) -> float:
    """Return the expected F1 of a set, from the gains (sizes, M) of labels in sets of sizes ks."""
    if not len(chosen):
        return empty
    places = np.searchsorted(labels, chosen)
    return float(gains[len(chosen) - ks[0], places].sum())


def _with_above(closure: Closure, labels: Sequence[int]) -> list[int]:
    """Return labels and those above them, ascending."""
    return sorted({each for label in labels for each in (label, *closure.ids_above(label))})


def replace_rows(sets: Ids, rows: Ints, others: Sequence[Sequence[int]]) -> Ids:
    """Replace some of the sets (n, S)."""
    width = max(map(len, others), default=0)
    found: Ids = widen(sets, width).copy()
    for row, labels in zip(rows, others, strict=True):
        found[row] = -1
        found[row, : len(labels)] = sorted(labels)
    return found


def propose_closed(
    limits: SetLimits, closure: Closure, proposed: Ids, log_odds: Floats | Floats32
) -> Ids:
    """Return closed sets that fit, (n, G, S), made from proposed ones (n, K, S).

    The first is the most probable one if labels are independent, of these log-odds (n, L).
    """
    n = len(proposed)
    nothing = np.full((n, 1), -1, dtype=np.int32)
    sets = [_find_largest_sum(row, limits, closure) for row in log_odds]
    first = replace_rows(nothing, np.arange(n), sets)[:, None]
    found = join_sets([first, closure.close(proposed), closure.prune(proposed)])
    fitting = np.where(limits.fit(found)[:, :, None], found, found[:, :1])
    return pack_labels(fitting.astype(np.int32))


def keep_closed(
    found: SetCandidates, closure: Closure, set_log_probs: SetLogProbs
) -> SetCandidates:
    """Return the closed sets of candidates, in descending order of probability.

    For documents with candidates that are not closed, the first candidates are also closed and
    pruned, and the system is asked for the probabilities of the results.
    """
    is_found = found.log_probs > -np.inf
    is_closed = closure.fit(found.labels)
    rows = np.flatnonzero((is_found & ~is_closed).any(axis=1))
    if not len(rows):
        return found
    first = found.labels[rows, :N_CHANGED]
    added = pack_labels(join_sets([closure.close(first), closure.prune(first)]))
    G, width = added.shape[1], max(found.labels.shape[2], added.shape[2])
    labels = np.full((len(is_found), found.labels.shape[1] + G, width), -1, dtype=np.int32)
    labels[:, G:, : found.labels.shape[2]] = found.labels
    labels[rows, :G, : added.shape[2]] = added
    log_probs = np.full(labels.shape[:2], -np.inf)
    log_probs[:, G:] = np.where(is_closed, found.log_probs, -np.inf)
    log_probs[rows, :G] = set_log_probs(rows, added)
    # A set may be found several times. A closed set comes first, even if its probability is 0.
    keys = set_keys(labels, len(closure.above))
    order = np.lexsort((keys, -log_probs, ~closure.fit(labels)), axis=1)
    keys, log_probs = (np.take_along_axis(each, order, axis=1) for each in (keys, log_probs))
    log_probs[:, 1:][keys[:, 1:] == keys[:, :-1]] = -np.inf
    labels = np.take_along_axis(labels, order[:, :, None], axis=1)
    labels, log_probs = rank_sets(labels, log_probs)
    return SetCandidates(pack_labels(labels), log_probs)


def find_best_closed(
    closure: Closure,
    labels: Sequence[int],
    values: Floats,
    sizes: Sequence[tuple[int, int]] | None = None,
    required: Sequence[int] = (),
) -> tuple[float, int, list[int]] | None:
    """Return the closed set of the largest sum of values: the sum, its row of values, and the set.

    The labels of the set are `labels`, which contain all labels above them, and `required` is
    closed too. `values` are (T, M): each row is a way to rate labels. With `sizes`, pairs of a row
    and a size, only sets of these sizes are rated by a row. None if no set fits.

    Each label first keeps one parent only, the first of them. A dynamic programme over this
    forest gives an upper bound, and the best set itself if that is closed. If it is not, one of its
    labels that lacks a parent is required and then forbidden, and the better of both is returned.
    """
    forest = _Forest.of(closure, labels)
    best: tuple[float, int, Bools] | None = None
    M = len(forest.labels)
    values = values[:, forest.places]
    sized = [(row, -1) for row in range(len(values))] if sizes is None else sizes
    waiting = [(np.isin(forest.labels, list(required)), np.zeros(M, dtype=bool))]
    for _ in range(_count_branches(M, len(values), sizes)):
        if not waiting:
            break
        must, must_not = waiting.pop()
        found = forest.solve(values, sizes, must, must_not)
        if found is None or (best is not None and found[0] <= best[0]):
            continue
        is_in = found[2]
        chosen = np.flatnonzero(is_in).tolist()
        lacking = [node for node in chosen if not is_in[forest.above[node]].all()]
        if not lacking:
            best = found
            continue
        for near in forest.close(is_in, lacking):
            n = int(near.sum())
            rated = [(float(values[row, near].sum()), row) for row, k in sized if k in (n, -1)]
            if rated and (best is None or max(rated)[0] > best[0]):
                best = (*max(rated), near)
        missing = lacking[0]
        without = must_not.copy()
        without[[missing, *forest.below[missing]]] = True
        if not (must & without).any():
            waiting.append((must, without))
        with_it = must.copy()
        with_it[[missing, *forest.above[missing]]] = True
        if not (with_it & must_not).any():
            waiting.append((with_it, must_not))
    if best is None:
        return None
    return best[0], best[1], [int(each) for each in forest.labels[best[2]]]


def _count_branches(M: int, T: int, sizes: Sequence[tuple[int, int]] | None) -> int:
    """Return how many branches to try: fewer if each of them takes longer."""
    W = 1 if sizes is None else max((size for _, size in sizes), default=0) + 1
    return int(np.clip(MOST_WORK // max(M * (T * W + CALL), 1), LEAST_BRANCHES, MOST_BRANCHES))


@dataclass(frozen=True)
class _Forest:
    """Some labels in an order in which each is followed by all that hang from it."""

    labels: Ids  # (M,)
    places: npt.NDArray[np.intp]  # (M,) among the labels given
    after: list[int]  # of each node, the first node that does not hang from it
    above: list[list[int]]  # all nodes above each, also by other parents
    below: list[list[int]]

    @classmethod
    def of(cls, closure: Closure, labels: Sequence[int]) -> _Forest:
        own = set(labels)
        hanging: dict[int, list[int]] = {}
        depth = {label: len(closure.ids_above(label)) for label in labels}
        for label in labels:
            # One of the nearest labels above: it has the most labels above itself.
            above = closure.ids_above(label)
            parent = max(above, key=lambda each: (depth[each], -each)) if above else -1
            hanging.setdefault(parent, []).append(label)
        nodes: list[int] = []
        after: dict[int, int] = {}

        def visit(label: int) -> None:
            nodes.append(label)
            for each in hanging.get(label, []):
                visit(each)
            after[label] = len(nodes)

        for root in hanging.get(-1, []):
            visit(root)
        at = {label: node for node, label in enumerate(nodes)}
        given = {label: place for place, label in enumerate(labels)}
        return cls(
            np.array(nodes, dtype=np.int32),
            np.array([given[label] for label in nodes], dtype=np.intp),
            [after[label] for label in nodes],
            [[at[each] for each in closure.ids_above(label)] for label in nodes],
            [[at[each] for each in closure.below[label] if each in own] for label in nodes],
        )

    def close(self, is_in: Bools, lacking: Sequence[int]) -> tuple[Bools, Bools]:
        """Return a set without the nodes that lack one above them, and with those above."""
        fewer, more = is_in.copy(), is_in.copy()
        fewer[lacking] = False
        for node in lacking:
            more[self.above[node]] = True
        return fewer, more

    def solve(
        self,
        values: Floats,
        sizes: Sequence[tuple[int, int]] | None,
        must: Bools,
        must_not: Bools,
    ) -> tuple[float, int, Bools] | None:
        """Return the best set in which each node brings the one that it hangs from."""
        M, T = len(self.labels), len(values)
        pairs = [(row, 0) for row in range(T)] if sizes is None else sizes
        if not pairs:
            return None
        rows, wanted = np.array(pairs).T
        W = int(wanted.max()) + 1
        # The best sum of the nodes from each on, by the number of nodes taken: (M + 1, T, W).
        best = np.full((M + 1, T, W), -np.inf)
        best[M, :, 0] = 0.0
        is_taken = np.zeros((M, T, W), dtype=bool)
        for node in range(M - 1, -1, -1):
            taken = best[node + 1] + values[:, node, None]
            if sizes is not None:
                taken = np.concatenate([np.full((T, 1), -np.inf), taken[:, :-1]], axis=1)
            left = best[self.after[node]]
            if must[node]:
                best[node], is_taken[node] = taken, True
            elif must_not[node]:
                best[node] = left
            else:
                is_taken[node] = taken >= left
                best[node] = np.where(is_taken[node], taken, left)
        totals = best[0, rows, wanted]
        if totals.max() == -np.inf:
            return None
        chosen = int(totals.argmax())
        row, size = int(rows[chosen]), int(wanted[chosen])
        is_in, node = np.zeros(M, dtype=bool), 0
        while node < M:
            if is_taken[node, row, size]:
                is_in[node] = True
                size -= sizes is not None
                node += 1
            else:
                node = self.after[node]
        return float(totals[chosen]), row, is_in
