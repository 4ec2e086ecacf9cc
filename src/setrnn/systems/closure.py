"""Sets of label ids that are closed: with each label, they contain all labels above it."""

# n documents, K candidates, G sets per document, S labels of the largest set, L labels, A labels
# above a label

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import (
    Bools,
    Floats,
    Ids,
    Ints,
    SetCandidates,
    join_sets,
    list_distinct,
    pack_labels,
    rank_sets,
)
from setrnn.systems.limits import SetLimits, set_keys

# Sets (n, G, S) of the documents to the value of each, (n, G).
RateSets = Callable[[Ids], Floats]
Keys = npt.NDArray[np.int64]


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
    def depths(self) -> Ints:
        """The number of labels above each label, (L,)."""
        return np.asarray((self.above >= 0).sum(axis=1))

    def ids_above(self, label: int) -> list[int]:
        """Return the labels above a label."""
        return [int(each) for each in self.above[label] if each >= 0]

    def parents(self, label: int) -> list[int]:
        """Return the labels directly above a label: those that are above no other of them."""
        return [int(each) for each in self._parents[label]]

    @cached_property
    def _parents(self) -> Ragged:
        """The labels directly above each label, ascending."""
        label, place = np.nonzero(self.above >= 0)
        ones, L = np.ones(len(label), dtype=np.int32), len(self.above)
        is_above = scipy.sparse.csr_array((ones, (label, self.above[label, place])), shape=(L, L))
        n_between = is_above @ is_above  # labels between a label and one above it
        direct = is_above - is_above.multiply(n_between.sign())
        direct.eliminate_zeros()
        direct.sort_indices()
        return Ragged(direct.indices.astype(np.int32), direct.indptr.astype(np.int64))

    @cached_property
    def _pairs(self) -> Keys:
        """A number per label and label above it, ascending."""
        label, place = np.nonzero(self.above >= 0)
        return np.sort(label * len(self.above) + self.above[label, place])

    def is_below(self, label_sets: Ids, tops: Ids) -> Bools:
        """Return which labels of sets (n, S) are below the label of `tops`, (n, 1): (n, S)."""
        wanted = label_sets.astype(np.int64) * len(self.above) + tops
        places = np.searchsorted(self._pairs, wanted)
        is_pair = np.append(self._pairs, -1)[places] == wanted
        return np.asarray(is_pair & (label_sets >= 0) & (tops >= 0))

    def close(self, label_sets: Ids) -> Ids:
        """Add to sets (..., S) all labels above theirs: (..., S), packed."""
        *shape, S = label_sets.shape
        flat = label_sets.reshape(-1, S)
        above = self.above[:, : self._depth(flat)]
        brought = np.where(flat[:, :, None] >= 0, above[flat], -1).reshape(len(flat), -1)
        distinct, _ = list_distinct(np.concatenate([flat, brought], axis=1))
        return pack_labels(distinct).reshape(*shape, -1)

    def prune(self, label_sets: Ids) -> Ids:
        """Remove from sets (..., S) the labels that lack one above them: (..., S), packed."""
        while not (is_kept := self._has_parents(label_sets)).all():
            label_sets = np.where(is_kept, label_sets, -1)
        return pack_labels(label_sets)

    def fit(self, label_sets: Ids) -> Bools:
        """Return which sets (..., S) are closed: (...)."""
        return np.asarray(self._has_parents(label_sets).all(axis=-1))

    def _has_parents(self, label_sets: Ids) -> Bools:
        """Return which places of sets (..., S) hold no label, or one whose parents are there."""
        flat = label_sets.reshape(-1, label_sets.shape[-1]).astype(np.int64)
        found = np.ones(flat.shape, dtype=bool)
        rows, places = np.nonzero(flat >= 0)
        parents = self._parents.take(flat[rows, places])  # one row per label
        first_key = rows * len(self.above)
        wanted = first_key[parents.row_numbers] + parents.values
        is_missing = ~np.isin(wanted, first_key + flat[rows, places])
        child = parents.row_numbers[is_missing]
        found[rows[child], places[child]] = False
        return found.reshape(label_sets.shape)

    def _depth(self, label_sets: Ids) -> int:
        """Return the most labels above one of some labels."""
        return int(self.depths[label_sets[label_sets >= 0]].max(initial=0))


def close_sets(
    chosen: Ids, limits: SetLimits, rate: RateSets, candidates: Ids | None = None
) -> Ids:
    """Return the best closed sets found, (n, S), given the best sets that need not be closed.

    Each set is closed. Then its labels, the lowest first, are removed with those below them if
    that makes the set better. In a tree this gives the largest sum of values of labels. The result
    competes with the chosen set without the labels that lack one above, and with `candidates`
    (n, K, S).
    """
    closure = limits.closure
    if closure is None or closure.fit(chosen).all():
        return chosen
    smallest = np.array([limits.smallest_set()], dtype=np.int32).repeat(len(chosen), axis=0)
    found = [_remove_branches(closure.close(chosen), limits, closure, rate)]
    found += [closure.prune(chosen), smallest]
    proposed = join_sets([each[:, None] for each in found])
    if candidates is not None:
        proposed = join_sets([proposed, candidates])
    values = np.where(limits.fit(proposed), rate(proposed), -np.inf)
    return pack_labels(proposed[np.arange(len(proposed)), values.argmax(axis=1)])


def _remove_branches(sets: Ids, limits: SetLimits, closure: Closure, rate: RateSets) -> Ids:
    """Remove labels, with those below them, from closed sets (n, S) while that is better."""
    depths = np.where(sets >= 0, closure.depths[sets], -1)
    lowest_first = np.argsort(-depths, axis=1, kind="stable")
    sets = np.take_along_axis(sets, lowest_first, axis=1)
    for place in range(sets.shape[1]):
        label = sets[:, place, None]
        without = np.where((sets == label) | closure.is_below(sets, label), -1, sets)
        values = rate(np.stack([sets, without], axis=1))  # (n, 2)
        is_better = (values[:, 1] > values[:, 0]) | ((sets >= 0).sum(1) > limits.max_labels)
        is_better &= ~np.isin(sets[:, place], limits.required)
        is_better &= (without >= 0).sum(axis=1) >= limits.min_labels
        sets = np.where(is_better[:, None], without, sets)
    return sets


def close_candidates(
    found: SetCandidates, closure: Closure, set_log_probs: RateSets
) -> SetCandidates:
    """Add to each candidate the labels above its own; the system is asked for the log p."""
    if closure.fit(found.labels).all():
        return found
    labels = closure.close(found.labels)
    keys = set_keys(labels, len(closure.above))
    is_repeat = np.tril(keys[:, :, None] == keys[:, None], -1).any(axis=2)
    is_set = (found.log_probs > -np.inf) & ~is_repeat
    log_probs = np.where(is_set, set_log_probs(labels), -np.inf)
    return SetCandidates(*rank_sets(labels, log_probs))
