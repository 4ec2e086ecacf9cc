"""p(label | document) with the true labels, to fit thresholds and curves to.

With few labels, these are arrays of documents x labels. With many labels, they are pairs of a
document and a label: those of a probability that matters, and the true ones.
"""

# n documents, L labels, E pairs

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import Bools, Floats32, Ids

# From this number of labels on, documents x labels and features x labels are kept sparse.
MANY_LABELS = 1_000
LEAST_KEPT = 1e-4  # pairs below are not used to fit curves, and reach no threshold


def hide_probs(probs: Floats32, unknown: Bools | None) -> Floats32:
    """Return probabilities (n, L) with 0 for the labels that are not known, if there are some."""
    return probs if unknown is None else np.where(unknown, np.float32(0), probs)


@dataclass(frozen=True)
class Places:
    """The document and the label of each of E pairs, in the order of the labels.

    With many labels, p(label | document) is kept for the pairs that matter, (E,), instead of all,
    (n, L).
    """

    document: npt.NDArray[np.int32]  # (E,)
    label: Ids  # (E,) ascending
    shape: tuple[int, int]  # (n, L)

    def keep(self, is_kept: Bools) -> Places:
        """Return some of the pairs."""
        return Places(self.document[is_kept], self.label[is_kept], self.shape)

    def fill(self, values: npt.NDArray[Any], labels: slice) -> npt.NDArray[Any]:
        """Return the values (E,) of some labels for all documents, 0 if not kept: (n, labels)."""
        start, stop = np.searchsorted(self.label, [labels.start, labels.stop])
        found = np.zeros((self.shape[0], labels.stop - labels.start), dtype=values.dtype)
        found[self.document[start:stop], self.label[start:stop] - labels.start] = values[start:stop]
        return found


@dataclass(frozen=True)
class TrueMarginals:
    """The probabilities of labels, whether they are true, and their places if they are pairs."""

    probs: Floats32  # (n, L), or (E,)
    is_label: Bools  # (n, L), or (E,)
    places: Places | None

    @classmethod
    def of(cls, probs: Floats32, labels: Ragged, unknown: Bools | None = None) -> TrueMarginals:
        """Keep what matters of probabilities (n, L); the rows of true labels have ids below L.

        Labels that are not known, marked in `unknown` (n, L), get the probability 0: they reach no
        threshold, and change no curve.
        """
        probs = hide_probs(probs, unknown)
        is_label = np.zeros(probs.shape, dtype=bool)
        is_label[labels.row_numbers, labels.values] = True
        if probs.shape[1] < MANY_LABELS:
            return cls(probs, is_label, None)
        label, document = np.nonzero(((probs >= LEAST_KEPT) | is_label).T)
        at = (document, label)
        places = Places(document.astype(np.int32), label.astype(np.int32), probs.shape)
        return cls(probs[at], is_label[at], places)

    @classmethod
    def concatenate(cls, parts: Sequence[TrueMarginals]) -> TrueMarginals:
        """Join the documents of several parts."""
        probs = np.concatenate([each.probs for each in parts])
        is_label = np.concatenate([each.is_label for each in parts])
        places = [each.places for each in parts if each.places is not None]
        if not places:
            return cls(probs, is_label, None)
        first = np.cumsum([0, *(each.shape[0] for each in places)])
        document = np.concatenate(
            [np.int32(start) + each.document for start, each in zip(first, places, strict=False)]
        )
        label = np.concatenate([each.label for each in places])
        order = np.argsort(label, kind="stable")
        shape = (int(first[-1]), places[0].shape[1])
        joined = Places(document[order], label[order], shape)
        return cls(probs[order], is_label[order], joined)
