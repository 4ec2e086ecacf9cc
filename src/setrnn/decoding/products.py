"""Candidates of labels that are independent: all that is asked of them is known exactly."""

# n documents, L labels, M labels that matter to a document, Z sizes, G given sets

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from setrnn.decoding.candidates import LabelSizeProbs, SetCandidates, log_sigmoid

if TYPE_CHECKING:
    from typing_extensions import Self

# A label less likely than this is in no set of highest expected F1; nor is the 129th.
LEAST_CHANCE, MAX_LABELS = 1e-3, 128


@dataclass(frozen=True)
class ProductCandidates(SetCandidates):
    """The best sets, where p(set) is the product over all labels."""

    logits: npt.NDArray[np.float32]  # (n, L)

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Return the candidates of some of the documents."""
        return type(self)(self.labels[rows], self.log_probs[rows], self.logits[rows])

    def marginals(self, n_labels: int) -> npt.NDArray[np.float32]:
        """Return the probability of each label: (n, L)."""
        return np.asarray(expit(self.logits))

    def missing_mass(self) -> npt.NDArray[np.float64]:
        """Return 0: the marginals are exact."""
        return np.zeros(len(self))

    def log_probs_of(self, label_sets: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Return log p of given sets, (n, G, S): (n, G)."""
        logits = self.logits.astype(np.float64)
        of_none = log_sigmoid(-logits).sum(axis=1, keepdims=True)
        return np.asarray(of_none + sum_over_sets(logits, label_sets))

    def label_size_probs(self, n_labels: int, also: Sequence[int] = ()) -> LabelSizeProbs:
        """Return p(label in the set, its size): p(label) times p(size - 1) of all the others."""
        probs = expit(self.logits.astype(np.float64))
        labels = likeliest_labels(probs, LEAST_CHANCE, MAX_LABELS, also)
        chosen = np.take_along_axis(probs, labels, axis=1)  # (n, M)
        np.put_along_axis(probs, labels, 0.0, axis=1)
        Z = _most_labels(probs.sum(axis=1) + chosen.sum(axis=1), n_labels)
        others = _size_probs(probs, Z)  # of the labels that do not matter
        before, after = _prefixes(chosen, Z), _prefixes(chosen[:, ::-1], Z, others)[:, ::-1]
        empty = after[:, 0, 0].copy()
        before, after = before[:, :-1], after[:, 1:]
        without = np.zeros_like(before)  # (n, M, Z): sizes 0 .. Z - 1 of all but one label
        for size in range(Z):
            without[:, :, size:] += before[:, :, size, None] * after[:, :, : Z - size]
        return LabelSizeProbs(labels, chosen[:, :, None] * without, empty)


def likeliest_labels(
    probs: npt.NDArray[np.float64], least: float, most: int, also: Sequence[int]
) -> npt.NDArray[np.int32]:
    """List the labels of at least this chance in any document, and some more: (n, M) ascending.

    As many for each document, at most `most` besides those `also` asked for.
    """
    ranked = probs.copy()
    ranked[:, list(also)] = 2.0
    M = int((ranked >= least).sum(axis=1).max(initial=1))
    M = min(max(M, 1), most + len(also), probs.shape[1])
    labels = np.argpartition(-ranked, M - 1, axis=1)[:, :M]
    return np.sort(labels, axis=1).astype(np.int32)


def sum_over_sets(
    values: npt.NDArray[np.float64], label_sets: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """Sum the values (n, L) of each set's labels, (n, G, S) that -1 fills up: (n, G)."""
    document = np.arange(len(values))[:, None, None]
    chosen = values[document, np.maximum(label_sets, 0)]
    return np.asarray(np.where(label_sets >= 0, chosen, 0.0).sum(2))


def _most_labels(expected: npt.NDArray[np.float64], n_labels: int) -> int:
    """Return a size that is passed with a chance of less than 1e-9 (Bernstein's bound)."""
    mean = float(expected.max(initial=0.0))
    return max(1, min(n_labels, int(np.ceil(mean + 6.5 * np.sqrt(mean) + 14))))


def _size_probs(probs: npt.NDArray[np.float64], Z: int) -> npt.NDArray[np.float64]:
    """Return p(so many of the labels), for 0 .. Z - 1: (n, Z)."""
    sizes = np.zeros((len(probs), Z))
    sizes[:, 0] = 1.0
    for label in np.flatnonzero(probs.max(axis=0, initial=0.0) > 1e-12):
        sizes = _with_label(sizes, probs[:, label])
    return sizes


def _prefixes(
    probs: npt.NDArray[np.float64], Z: int, start: npt.NDArray[np.float64] | None = None
) -> npt.NDArray[np.float64]:
    """Return p(so many of the first m labels), for m = 0 .. M: (n, M + 1, Z)."""
    n, M = probs.shape
    result = np.zeros((n, M + 1, Z))
    result[:, 0] = np.eye(1, Z) if start is None else start
    for label in range(M):
        result[:, label + 1] = _with_label(result[:, label], probs[:, label])
    return result


def _with_label(
    sizes: npt.NDArray[np.float64], prob: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Count one more label in: sizes (n, Z), its probability (n,)."""
    longer = sizes * (1 - prob)[:, None]
    longer[:, 1:] += sizes[:, :-1] * prob[:, None]
    return longer
