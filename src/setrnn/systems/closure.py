"""Sets of label ids that are closed upwards: a label brings all labels above it."""

# n documents, K sets per document, S labels of the largest set, L labels, A labels above a label,
# M labels to choose from, T sizes to try, W sizes of sets

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary
from setrnn.systems.candidates import Bools, Floats, Ids, list_distinct, pack_labels

# Branches for labels with several parents; then the best set so far is taken. Work is counted in
# numbers, of which a call of a function takes the time of CALL.
LEAST_BRANCHES, MOST_BRANCHES = 16, 500
MOST_WORK, CALL = 2**25, 4_000


@dataclass(frozen=True)
class Closure:
    """The labels above each label of a model.

    Example: label 2 is below 0, and label 3 below 2.

        >>> from setrnn.data.ragged import Ragged
        >>> closure = Closure(Ragged.from_lists([[], [], [0], [0, 2]]).padded())
        >>> closure.close(np.array([[1, 3]], dtype=np.int32)).tolist()
        [[0, 1, 2, 3]]
        >>> closure.prune(np.array([[0, 3], [0, 2]], dtype=np.int32)).tolist()
        [[0, -1], [0, 2]]
    """

    above: Ids  # (L, A) padded with -1

    @classmethod
    def of(cls, hierarchy: Hierarchy, labels: LabelVocabulary) -> Closure:
        """Turn names into ids; labels that the model does not have are left out."""
        rows = labels.encode([hierarchy.ancestors(name) for name in labels.names])
        return cls(rows.padded(min_width=1))

    @cached_property
    def below(self) -> list[list[int]]:
        """The labels below each label."""
        found: list[list[int]] = [[] for _ in self.above]
        for label, place in zip(*np.nonzero(self.above >= 0), strict=True):
            found[self.above[label, place]].append(int(label))
        return found

    @cached_property
    def inner(self) -> list[int]:
        """The labels that are above another."""
        return [label for label, own in enumerate(self.below) if own]

    def ids_above(self, label: int) -> list[int]:
        """Return the labels above a label."""
        return [int(each) for each in self.above[label] if each >= 0]

    def parents(self, label: int) -> list[int]:
        """Return the labels directly above a label: those that are above no other of them."""
        above = self.ids_above(label)
        farther = {each for other in above for each in self.ids_above(other)}
        return [each for each in above if each not in farther]

    def close(self, label_sets: Ids) -> Ids:
        """Add to sets (..., S) all labels above theirs: (..., S), packed."""
        *shape, S = label_sets.shape
        flat = label_sets.reshape(-1, S)
        brought = np.where(flat[:, :, None] >= 0, self.above[flat], -1).reshape(len(flat), -1)
        distinct, _ = list_distinct(np.concatenate([flat, brought], axis=1))
        return pack_labels(distinct).reshape(*shape, -1)

    def prune(self, label_sets: Ids) -> Ids:
        """Remove from sets (..., S) the labels that lack one above them: (..., S), packed."""
        return pack_labels(np.where(self._is_supported(label_sets), label_sets, -1))

    def fit(self, label_sets: Ids) -> Bools:
        """Return which sets (..., S) are closed: (...)."""
        return np.asarray((self._is_supported(label_sets) | (label_sets < 0)).all(axis=-1))

    def _is_supported(self, label_sets: Ids) -> Bools:
        """Return which labels of sets (..., S) have all labels above them in the set."""
        found = label_sets >= 0
        for column in self.above.T:
            wanted = np.where(label_sets >= 0, column[label_sets], -1)
            is_there = (wanted[..., None] == label_sets[..., None, :]).any(axis=-1)
            found &= is_there | (wanted < 0)
        return found

    def order(self, labels: Sequence[int]) -> list[int]:
        """Sort labels so that each comes after those above it; otherwise their order is kept."""
        left, done, found = list(labels), set[int](), list[int]()
        wanted = set(left)
        while left:
            is_free = [not (wanted - done).intersection(self.ids_above(each)) for each in left]
            ready = [each for each, free in zip(left, is_free, strict=True) if free]
            found += ready
            done.update(ready)
            left = [each for each, free in zip(left, is_free, strict=True) if not free]
        return found


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
        waiting = [(label, False) for label in reversed(hanging.get(-1, []))]
        while waiting:
            label, is_done = waiting.pop()
            if is_done:
                after[label] = len(nodes)
                continue
            nodes.append(label)
            waiting.append((label, True))
            waiting += [(each, False) for each in reversed(hanging.get(label, []))]
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
