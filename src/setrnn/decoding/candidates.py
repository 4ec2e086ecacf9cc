"""The sets a model finds likely for each document, with their probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# n documents, K candidates, S labels of the largest set


@dataclass(frozen=True)
class SetCandidates:
    """For each document, distinct label sets by falling probability."""

    labels: npt.NDArray[np.int32]  # (n, K, S) ids, ascending; -1 fills up
    log_probs: npt.NDArray[np.float64]  # (n, K); -inf where there are fewer than K sets

    def __len__(self) -> int:
        return len(self.labels)

    def set_at(self, document: int, rank: int) -> list[int]:
        """Return one candidate as label ids, ascending."""
        row = self.labels[document, rank]
        return [int(label) for label in row if label >= 0]

    def ranks(self, labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return which candidate the set of each document (n, S) is: (n,); -1 where none."""
        width = max(labels.shape[1], self.labels.shape[2])
        one, all_of_them = _widened(labels, width)[:, None], _widened(self.labels, width)
        is_it = (one == all_of_them).all(axis=2) & (self.log_probs > -np.inf)  # (n, K)
        return np.where(is_it.any(axis=1), is_it.argmax(axis=1), -1)

    def marginals(self, n_labels: int) -> npt.NDArray[np.float32]:
        """Sum the sets that hold each label, as shares of the candidates' probability: (n, L).

        What the candidates leave out is taken to be spread like them.
        """
        n, K, S = self.labels.shape
        best = np.maximum(self.log_probs.max(axis=1, keepdims=True, initial=-np.inf), -1e300)
        shares = np.exp(self.log_probs - best)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        document, rank, place = np.nonzero(self.labels >= 0)
        label = self.labels[document, rank, place]
        sums = np.bincount(
            document * n_labels + label, weights=shares[document, rank], minlength=n * n_labels
        )
        return np.minimum(sums, 1.0).reshape(n, n_labels).astype(np.float32)


def _widened(labels: npt.NDArray[np.int32], width: int) -> npt.NDArray[np.int32]:
    more = [(0, 0)] * (labels.ndim - 1) + [(0, width - labels.shape[-1])]
    return np.pad(labels, more, constant_values=-1)


def pack_labels(labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Sort the ids of each set, put -1 last, and cut columns that no set needs."""
    last = np.iinfo(np.int32).max
    ascending = np.sort(np.where(labels < 0, last, labels), axis=-1)
    width = max(int((labels >= 0).sum(-1).max(initial=0)), 1)
    ascending = ascending[..., :width]
    return np.where(ascending == last, -1, ascending).astype(np.int32)


def log_sigmoid(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return log p of a label that is there; of one that is not, with the sign turned."""
    return np.asarray(-np.logaddexp(0, -logits))
