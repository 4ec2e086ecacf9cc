"""p(label | document) with the true labels, to fit thresholds and curves to."""

# n documents, L labels, E pairs of a document and a label

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import Bools, Floats, Floats32, Ids

# From this number of labels on, features x labels are kept sparse, and pairs of a document and a
# label below LEAST_KEPT are left out: they are not used to fit curves, and reach no threshold.
MANY_LABELS = 1_000
LEAST_KEPT = 1e-4


@dataclass(frozen=True)
class TrueMarginals:
    """The probabilities of pairs of a document and a label, and whether they are true.

    The pairs are in the order of the labels. Pairs of probability 0 that are not true are left out.
    """

    probs: Floats32  # (E,)
    is_label: Bools  # (E,)
    document: npt.NDArray[np.int32]  # (E,)
    label: Ids  # (E,) ascending
    shape: tuple[int, int]  # (n, L)

    @classmethod
    def of(cls, probs: Floats32, labels: Ragged, unknown: Bools | None = None) -> TrueMarginals:
        """Keep what matters of probabilities (n, L); the rows of true labels have ids below L.

        Labels that are not known, marked in `unknown` (n, L), get the probability 0: they reach no
        threshold, and change no curve.
        """
        is_label = np.zeros(probs.shape, dtype=bool)
        is_label[labels.row_numbers, labels.values] = True
        known = probs if unknown is None else np.where(unknown, np.float32(0), probs)
        return cls.of_matrices(known, is_label)

    @classmethod
    def of_matrices(cls, probs: Floats32, is_label: Bools) -> TrueMarginals:
        """Keep what matters of probabilities and of which labels are true, (n, L)."""
        is_kept = probs >= LEAST_KEPT if probs.shape[1] >= MANY_LABELS else probs > 0
        label, document = np.nonzero((is_kept | is_label).T)
        at, places = (document, label), (document.astype(np.int32), label.astype(np.int32))
        return cls(probs[at], is_label[at], *places, (probs.shape[0], probs.shape[1]))

    @classmethod
    def concatenate(cls, parts: Sequence[TrueMarginals]) -> TrueMarginals:
        """Join the documents of several parts."""
        first = np.cumsum([0, *(each.shape[0] for each in parts)])
        starts = [np.full(len(each.probs), at) for at, each in zip(first, parts, strict=False)]
        label = np.concatenate([each.label for each in parts])
        order = np.argsort(label, kind="stable")
        document = np.concatenate([each.document for each in parts]) + np.concatenate(starts)
        return cls(
            np.concatenate([each.probs for each in parts])[order],
            np.concatenate([each.is_label for each in parts])[order],
            document[order].astype(np.int32),
            label[order],
            (int(first[-1]), parts[0].shape[1]),
        )

    def keep(self, is_kept: Bools) -> TrueMarginals:
        """Return some of the pairs."""
        places = (self.document[is_kept], self.label[is_kept])
        return TrueMarginals(self.probs[is_kept], self.is_label[is_kept], *places, self.shape)

    def fill(self, values: npt.NDArray[Any], labels: slice) -> npt.NDArray[Any]:
        """Return the values (E,) of some labels for all documents, 0 if not kept: (n, labels)."""
        start, stop = np.searchsorted(self.label, [labels.start, labels.stop])
        found = np.zeros((self.shape[0], labels.stop - labels.start), dtype=values.dtype)
        found[self.document[start:stop], self.label[start:stop] - labels.start] = values[start:stop]
        return found

    def sum_by_label(self, values: npt.NDArray[Any]) -> Floats:
        """Sum values (E,) over the documents: (L,)."""
        sums = np.bincount(self.label, weights=values, minlength=self.shape[1])
        return np.asarray(sums, dtype=np.float64)
