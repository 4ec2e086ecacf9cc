"""Predictions for training documents by systems that did not see them.

Where documents are few, none are set aside: weights, thresholds and calibration are fitted on the
predictions for each fold of the documents by a system that was trained on the other folds.
"""

# n documents, K candidates, G given sets, S labels of the largest set, L labels, M labels that
# matter to a document, Z sizes of sets

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import (
    Floats,
    Floats32,
    Ids,
    Ints,
    LabelSizeProbs,
    SetCandidates,
    widen,
)
from setrnn.systems.known import Known
from setrnn.systems.system import System


def choose_folds(tokens: Ragged, n_folds: int, seed: int) -> Ints:
    """Return the fold of each document, (n,); equal texts are in the same fold.

    Example:
        >>> tokens = Ragged.from_lists([[5, 6], [7], [5, 6], [8]])
        >>> choose_folds(tokens, 2, seed=0).tolist()
        [0, 1, 0, 0]
    """
    _, text = np.unique([_key(row) for row in tokens], return_inverse=True)
    order = np.random.default_rng(seed).permutation(int(text.max(initial=-1)) + 1)
    return np.asarray(order[text] % n_folds)


@dataclass(frozen=True)
class CrossFitted(System):
    """Systems trained on all folds but one each. A training document has that of its fold."""

    whole: System  # trained on all documents
    by_fold: Sequence[System]
    fold_of: Mapping[bytes, int]  # by the tokens of a training document

    @classmethod
    def of(
        cls, whole: System, by_fold: Sequence[System], tokens: Ragged, folds: Ints
    ) -> CrossFitted:
        """Join systems; `folds` (n,) are those of the training documents."""
        fold_of = {_key(row): int(fold) for row, fold in zip(tokens, folds, strict=True)}
        return cls(whole, by_fold, fold_of)

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document."""
        place, row = np.zeros((2, len(tokens)), dtype=np.int64)
        parts = []
        for system, rows in self._split(tokens):
            place[rows], row[rows] = len(parts), np.arange(len(rows))
            some = None if known is None else known.take(rows)
            parts.append(system.candidates(tokens.take(rows), n_sets, source, some))
        return JoinedCandidates.of(parts, place, row)

    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        found = np.zeros(label_sets.shape[:2])
        for system, rows in self._split(tokens):
            found[rows] = system.set_log_probs(tokens.take(rows), label_sets[rows])
        return found

    def _split(self, tokens: Ragged) -> Iterator[tuple[System, Ints]]:
        """Yield each system that has documents, and their rows."""
        folds = np.array([self.fold_of[_key(row)] for row in tokens], dtype=np.int64)
        for fold in np.unique(folds):
            yield self.by_fold[fold], np.flatnonzero(folds == fold)


@dataclass(frozen=True)
class JoinedCandidates(SetCandidates):
    """The candidates that several systems found, each for some of the documents."""

    of_documents = (*SetCandidates.of_documents, "place", "row")
    parts: Sequence[SetCandidates]
    place: Ints  # (n,) which part has the document
    row: Ints  # (n,) its row there

    @classmethod
    def of(cls, parts: Sequence[SetCandidates], place: Ints, row: Ints) -> JoinedCandidates:
        """Join parts."""
        joined = SetCandidates.concatenate(parts)
        starts = np.cumsum([0, *map(len, parts)])
        order = starts[place] + row
        return cls(joined.labels[order], joined.log_probs[order], parts, place, row)

    def marginals(self, n_labels: int) -> Floats32:
        """Return p(label | document), (n, L)."""
        found = np.zeros((len(self), n_labels), dtype=np.float32)
        for part, rows in self._split():
            found[rows] = part.marginals(n_labels)
        return found

    def missing_mass(self) -> Floats:
        """Return the total probability of the sets that are not candidates: (n,)."""
        found = np.zeros(len(self))
        for part, rows in self._split():
            found[rows] = part.missing_mass()
        return found

    def log_probs_of(self, label_sets: Ids) -> Floats:
        """Return log p of given sets (n, G, S), packed: (n, G), NaN if a set is not known."""
        found = np.zeros(label_sets.shape[:2])
        for part, rows in self._split():
            found[rows] = part.log_probs_of(label_sets[rows])
        return found

    def label_size_probs(self, n_labels: int, also: Sequence[int] = ()) -> LabelSizeProbs:
        """Return p(label in the set, size of the set)."""
        tables = [(part.label_size_probs(n_labels, also), rows) for part, rows in self._split()]
        n, M, Z = (max(each.probs.shape[axis] for each, _ in tables) for axis in range(3))
        n = len(self)
        labels = np.full((n, M), -1, dtype=np.int32)
        probs, empty = np.zeros((n, M, Z)), np.zeros(n)
        for each, rows in tables:
            labels[rows] = widen(each.labels, M)
            probs[rows, : each.probs.shape[1], : each.probs.shape[2]] = each.probs
            empty[rows] = each.empty
        return LabelSizeProbs(labels, probs, empty)

    def _split(self) -> Iterator[tuple[SetCandidates, Ints]]:
        """Yield the candidates of each part, and the rows that have them."""
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(self.place == number)
            if len(rows):
                yield part.take(self.row[rows]), rows


def _key(row: Any) -> bytes:  # noqa: ANN401 (an array of token ids)
    return np.asarray(row, dtype=np.int32).tobytes()
