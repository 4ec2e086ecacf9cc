"""Sets of label ids that are closed: with each label, they contain all labels above it."""

# n documents, K candidates, G sets per document, S labels of the largest set, L labels, A labels
# above a label

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary
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
    is_below = sets[:, :, None] == sets[:, None]  # (n, S, S) a label, and one at or below it
    for column in closure.above.T:
        is_below |= sets[:, :, None] == column[sets][:, None]
    is_below &= (sets >= 0)[:, :, None]
    for place in range(sets.shape[1]):
        without = np.where(is_below[:, place], -1, sets)
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
