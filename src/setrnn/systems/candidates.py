"""The sets a model finds likely for each document, with their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing_extensions import Self

# n documents, K candidates, G given sets, S labels of the largest set, L labels in all,
# M labels that matter to a document, Z sizes of sets


@dataclass(frozen=True)
class LabelSizeProbs:
    """p(label in the set, size of the set), and p(empty set), for the labels that matter."""

    labels: npt.NDArray[np.int32]  # (n, M) ids, ascending; -1 fills up
    probs: npt.NDArray[np.float64]  # (n, M, Z), of the sizes 1 .. Z
    empty: npt.NDArray[np.float64]  # (n,)


@dataclass(frozen=True)
class Certificates:
    """What a search can say for the first candidate of each document."""

    is_proved: npt.NDArray[np.bool_]  # (n,) no set at all is more probable
    pruned: npt.NDArray[np.float64]  # (n,) the probability of all that was pruned

    def take(self, rows: npt.NDArray[np.int64]) -> Certificates:
        """Return those of some of the documents."""
        return Certificates(self.is_proved[rows], self.pruned[rows])


@dataclass(frozen=True)
class SetCandidates:
    """For each document, distinct label sets by falling probability.

    They stand for the whole distribution: a system that knows more of it than its best sets
    gives a subclass, with marginals and the like of its own.
    """

    labels: npt.NDArray[np.int32]  # (n, K, S) ids, ascending; -1 fills up
    log_probs: npt.NDArray[np.float64]  # (n, K); -inf where there are fewer than K sets
    certificates: Certificates | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Return the candidates of some of the documents."""
        certificates = None if self.certificates is None else self.certificates.take(rows)
        return replace(
            self,
            labels=self.labels[rows],
            log_probs=self.log_probs[rows],
            certificates=certificates,
        )

    def set_at(self, document: int, rank: int) -> list[int]:
        """Return one candidate as label ids, ascending."""
        row = self.labels[document, rank]
        return [int(label) for label in row if label >= 0]

    def ranks(self, labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return which candidate the set of each document (n, S) is: (n,); -1 where none."""
        width = max(labels.shape[1], self.labels.shape[2])
        one, all_of_them = widened(labels, width)[:, None], widened(self.labels, width)
        is_it = (one == all_of_them).all(axis=2) & (self.log_probs > -np.inf)  # (n, K)
        return np.where(is_it.any(axis=1), is_it.argmax(axis=1), -1)

    def marginals(self, n_labels: int) -> npt.NDArray[np.float32]:
        """Sum the sets that hold each label, as shares of the candidates' probability: (n, L).

        What the candidates leave out is taken to be spread like them.
        """
        n, K, S = self.labels.shape
        document, rank, place = np.nonzero(self.labels >= 0)
        label = self.labels[document, rank, place]
        shares = self._shares[document, rank]
        sums = np.bincount(document * n_labels + label, weights=shares, minlength=n * n_labels)
        return np.minimum(sums, 1.0).reshape(n, n_labels).astype(np.float32)

    def missing_mass(self) -> npt.NDArray[np.float64]:
        """Return the probability that the candidates leave out, (n,): the marginals guess it."""
        return np.asarray(np.clip(1 - np.exp(self.log_probs).sum(axis=1), 0.0, 1.0))

    def label_size_probs(self, n_labels: int, also: Sequence[int] = ()) -> LabelSizeProbs:
        """Sum the shares of the sets of each size that hold each label.

        For the labels of the document's candidates and those `also` asked for.
        """
        n, K, S = self.labels.shape
        asked = np.broadcast_to(np.array(also, dtype=np.int32), (n, len(also)))
        listed = np.concatenate([self.labels.reshape(n, K * S), asked], axis=1)
        labels, place = _distinct(listed)
        M, Z = labels.shape[1], max(S, 1)
        size = (self.labels >= 0).sum(axis=2)  # (n, K)
        document, rank, column = np.nonzero(self.labels >= 0)
        at = place[document, rank * S + column]
        sums = np.bincount(
            (document * M + at) * Z + size[document, rank] - 1,
            weights=self._shares[document, rank],
            minlength=n * M * Z,
        )
        probs = sums.astype(np.float64).reshape(n, M, Z)
        empty = np.where(size == 0, self._shares, 0.0).sum(axis=1)
        return LabelSizeProbs(labels, probs, empty)

    def log_probs_of(self, label_sets: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Look up log p of given sets, (n, G, S) packed: (n, G), NaN where it is not known."""
        own, given = _same_width(self.labels, label_sets)
        found = np.full(given.shape[:2], np.nan)
        for rank in range(own.shape[1]):
            is_same = (own[:, rank, None] == given).all(axis=2)
            is_same &= self.log_probs[:, rank, None] > -np.inf
            found = np.where(is_same, self.log_probs[:, rank, None], found)
        return found

    @property
    def _shares(self) -> npt.NDArray[np.float64]:
        """Each candidate's share of all the candidates' probability: (n, K)."""
        best = np.maximum(self.log_probs.max(axis=1, keepdims=True, initial=-np.inf), -1e300)
        shares = np.exp(self.log_probs - best)
        return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300))


def _distinct(
    listed: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """List each row's different ids, ascending, and the place of each value among them.

    Both -1 padded: (n, W) to (n, M) and (n, W).
    """
    order = np.argsort(listed, axis=1, kind="stable")
    ascending = np.take_along_axis(listed, order, axis=1)
    is_first = ascending >= 0
    is_first[:, 1:] &= ascending[:, 1:] != ascending[:, :-1]
    place_in_order = np.cumsum(is_first, axis=1) - 1
    labels = np.full((len(listed), int(place_in_order.max(initial=0)) + 1), -1, dtype=np.int32)
    row, column = np.nonzero(is_first)
    labels[row, place_in_order[row, column]] = ascending[row, column]
    place = np.empty_like(place_in_order)
    np.put_along_axis(place, order, place_in_order, axis=1)
    return labels, place


def _same_width(
    first: npt.NDArray[np.int32], second: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    width = max(first.shape[-1], second.shape[-1])
    return widened(first, width), widened(second, width)


def widened(labels: npt.NDArray[np.int32], width: int) -> npt.NDArray[np.int32]:
    """Fill up sets (..., S) with -1 to at least a width."""
    room = [(0, 0)] * (labels.ndim - 1) + [(0, max(width - labels.shape[-1], 0))]
    return np.pad(labels, room, constant_values=-1)


def pack_labels(labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Sort the ids of each set, put -1 last, and cut columns that no set needs."""
    last = np.iinfo(np.int32).max
    ascending = np.sort(np.where(labels < 0, last, labels), axis=-1)
    width = max(int((labels >= 0).sum(-1).max(initial=0)), 1)
    ascending = ascending[..., :width]
    return np.where(ascending == last, -1, ascending).astype(np.int32)


def listed(is_chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """List the chosen columns of each row; -1 fills up."""
    rows, columns = np.nonzero(is_chosen)
    position = np.cumsum(is_chosen, axis=1)[rows, columns] - 1
    found = np.full((len(is_chosen), int(position.max(initial=0)) + 1), -1, dtype=np.int32)
    found[rows, position] = columns
    return found


def log_sigmoid(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return log p of a label that is there; of one that is not, with the sign turned."""
    return np.asarray(-np.logaddexp(0, -logits))
