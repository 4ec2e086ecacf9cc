"""Sets of label ids that are closed: with each label, they contain all labels above it."""

# S labels of the largest set, L labels, A labels above a label

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary
from setrnn.systems.candidates import Bools, Ids, list_distinct, pack_labels


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
