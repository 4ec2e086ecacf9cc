"""Predictions for training documents by systems that did not see them.

Where documents are few, none are set aside: weights, thresholds and calibration are fitted on the
predictions for each fold of the documents by a system that was trained on the other folds.
"""

# n documents, K candidates, G given sets, S labels of the largest set, L labels, M labels that
# matter to a document, Z sizes of sets

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.config import Config
from setrnn.data.example import NOTHING, Hashes
from setrnn.data.ragged import Ragged
from setrnn.methods import Method
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
from setrnn.systems.system import Arrays, System


def choose_folds(text_hashes: Hashes, n_folds: int, seed: int) -> Ints:
    """Return the fold of each document, (n,); those with the same text are in the same fold.

    Example:
        >>> folds = choose_folds(np.array([7, 8, 7, 9], dtype=np.uint64), 2, seed=0)
        >>> bool(folds[0] == folds[2]), sorted(set(folds.tolist()))
        (True, [0, 1])
    """
    n = len(text_hashes)
    _, copies = np.unique(text_hashes, return_inverse=True)
    # Documents without words are not copies of each other.
    own = np.where(text_hashes == NOTHING, n + np.arange(n), copies)
    _, text = np.unique(own, return_inverse=True)
    order = np.random.default_rng(seed).permutation(int(text.max(initial=-1)) + 1)
    return np.asarray(order[text] % n_folds)


def mark_folds(tokens: Ragged, folds: Ints) -> Ragged:
    """Append its fold to the tokens of each document, for `CrossFitted`."""
    return tokens.append(Ragged.from_lengths(folds.astype(np.int32), np.ones_like(folds)))


@dataclass(frozen=True)
class CrossFitted(System):
    """Systems that were each trained on all folds but one.

    Its documents are training documents with their fold: see `mark_folds`. Each is predicted by the
    system that did not see its fold.
    """

    whole: System  # trained on all documents
    by_fold: Sequence[System]

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document."""
        place, row = np.zeros((2, len(tokens)), dtype=np.int64)
        parts: list[SetCandidates] = []
        for system, own, rows in self._split(tokens):
            place[rows], row[rows] = len(parts), np.arange(len(rows))
            some = None if known is None else known.take(rows)
            parts.append(system.candidates(own, n_sets, source, some))
        return JoinedCandidates.of(parts, place, row)

    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        found = np.zeros(label_sets.shape[:2])
        for system, own, rows in self._split(tokens):
            found[rows] = system.set_log_probs(own, label_sets[rows])
        return found

    def marginals(self, tokens: Ragged, candidates: SetCandidates | None = None) -> Floats32:
        """Return p(label | document), (n, L)."""
        parts = [(system.marginals(own), rows) for system, own, rows in self._split(tokens)]
        found = np.zeros((len(tokens), parts[0][0].shape[1]), dtype=np.float32)
        for marginals, rows in parts:
            found[rows] = marginals
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the weights of the system that was trained on all documents: only it is saved."""
        return self.whole.arrays()

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, method: Method, config: Config, device: str
    ) -> CrossFitted:
        """Raise TypeError: the systems of the folds are not saved."""
        raise TypeError("the systems of folds are not saved")

    def check_sizes(self, n_tokens: int, n_labels: int) -> None:
        """Raise ValueError if the weights are for another vocabulary or other labels."""
        self.whole.check_sizes(n_tokens, n_labels)

    def _split(self, tokens: Ragged) -> Iterator[tuple[System, Ragged, Ints]]:
        """Yield the system of each fold with documents, their own tokens, and their rows."""
        starts, lengths = tokens.offsets[:-1], tokens.lengths - 1
        folds = tokens.values[starts + lengths]
        for fold in np.unique(folds):
            rows = np.flatnonzero(folds == fold)
            yield self.by_fold[fold], tokens.spans(starts[rows], lengths[rows]), rows


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
