"""Label sets with their probabilities: one by its names, and the candidates of many documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from setrnn.errors import ModelError
from setrnn.systems.independent import list_likely_labels, size_probs_of_missing

if TYPE_CHECKING:
    from typing_extensions import Self

Ids = npt.NDArray[np.int32]  # of labels
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

# n documents, K candidates, G given sets, S labels of the largest set, L labels in all,
# M labels that matter to a document, Z sizes of sets


LEAST_MISSING = 1e-3  # probability: less changes no choice


@dataclass(frozen=True)
class ScoredSet:
    """A label set by the names of its labels, and its probability.

    Attributes:
        labels: the names of the labels.
        probability: p(set | document), or p(set | document, known labels) in a completion.

    Example:
        >>> ScoredSet(("sport", "weather"), 0.25)
        ScoredSet(labels=('sport', 'weather'), probability=0.25)
    """

    labels: tuple[str, ...]
    probability: float


def to_probability(log_prob: float) -> float:
    """Return a probability; rounding errors of sums do not make it exceed 1."""
    probability = float(np.exp(log_prob))
    if math.isnan(probability):
        raise ModelError(
            "The model gives probabilities that are not numbers: its weights are too large. "
            "Train or copy the model again."
        )
    return min(probability, 1.0)


@dataclass(frozen=True)
class LabelSizeProbs:
    """p(label in the set, size of the set) for the labels that matter, and p(empty set)."""

    labels: Ids  # (n, M) ascending ids, padded with -1
    probs: Floats  # (n, M, Z), for the sizes 1 .. Z
    empty: Floats  # (n,)


@dataclass(frozen=True)
class SetCandidates:
    """For each document, distinct label sets in descending order of probability.

    They stand for the whole distribution. A system that knows more of the distribution than its
    best sets returns a subclass, with exact marginals for example.

    Example: two documents; the second has one candidate, the empty set.

        >>> labels = np.array([[[0, 2], [2, -1]], [[-1, -1], [-1, -1]]], dtype=np.int32)
        >>> log_probs = np.array([np.log([0.6, 0.2]), [np.log(0.5), -np.inf]])
        >>> candidates = SetCandidates(labels, log_probs)
        >>> len(candidates), candidates.set_at(0, 0)
        (2, [0, 2])
        >>> candidates.marginals(n_labels=3)[0].tolist()
        [0.75, 0.0, 1.0]
        >>> candidates.missing_mass().round(2).tolist()
        [0.2, 0.5]
    """

    # The fields with one row per document.
    of_documents: ClassVar[tuple[str, ...]] = (
        "labels",
        "log_probs",
        "is_proved",
        "pruned",
        "label_probs",
    )
    labels: Ids  # (n, K, S) ascending ids, padded with -1
    log_probs: Floats  # (n, K), -inf where a document has fewer than K sets
    # (n,) of a search with certificates: whether no other set is more probable than the first, and
    # the total probability of what was pruned.
    is_proved: Bools | None = field(default=None, kw_only=True)
    pruned: Floats | None = field(default=None, kw_only=True)
    # (n, L) p(label) as the search estimates it; `marginals` bounds it. None without an estimate.
    label_probs: Floats32 | None = field(default=None, kw_only=True)

    @staticmethod
    def concatenate(parts: Sequence[SetCandidates], min_sets: int = 0) -> SetCandidates:
        """Join the candidates of several batches of documents.

        The result has at least `min_sets` columns. It has certificates and
        probabilities of labels if all parts have; other knowledge of subclasses is lost.
        """
        K = max((each.labels.shape[1] for each in parts), default=0)
        S = max((each.labels.shape[2] for each in parts), default=0)
        n, K, S = sum(map(len, parts)), max(K, min_sets), max(S, 1)
        labels = np.full((n, K, S), -1, dtype=np.int32)
        log_probs = np.full((n, K), -np.inf)
        start = 0
        for each in parts:
            n_here, K_here, S_here = each.labels.shape
            rows = slice(start, start + n_here)
            labels[rows, :K_here, :S_here] = each.labels
            log_probs[rows, :K_here] = each.log_probs
            start += n_here
        more: dict[str, Any] = {}
        for name in ("is_proved", "pruned", "label_probs"):
            values = [getattr(each, name) for each in parts]
            if parts and all(value is not None for value in values):
                more[name] = np.concatenate(values)
        return SetCandidates(labels, log_probs, **more)

    def __len__(self) -> int:
        return len(self.labels)

    def for_rule(self, rule: str) -> SetCandidates:
        """Return the candidates by which a rule chooses: these, unless the system is a mixture."""
        return self

    def take(self, rows: Ints) -> Self:
        """Return the candidates of some of the documents."""
        taken: dict[str, Any] = {}
        for name in self.of_documents:
            value: Any = getattr(self, name)
            if value is not None:
                taken[name] = value[rows] if isinstance(value, np.ndarray) else value.take(rows)
        return replace(self, **taken)

    def set_at(self, document: int, rank: int) -> list[int]:
        """Return one candidate as ascending label ids."""
        row = self.labels[document, rank]
        return [int(label) for label in row if label >= 0]

    def ranks(self, labels: Ids) -> Ints:
        """Return the rank of one set per document, (n, S), among its candidates: (n,).

        The rank is -1 if the set is not a candidate.
        """
        width = max(labels.shape[1], self.labels.shape[2])
        is_same = (widen(labels, width)[:, None] == widen(self.labels, width)).all(axis=2)  # (n, K)
        is_same &= self.log_probs > -np.inf
        return np.where(is_same.any(axis=1), is_same.argmax(axis=1), -1)

    def marginals(self, n_labels: int) -> Floats32:
        """Return p(label | document), (n, L), with an estimate for the sets that are missing.

        If the search made none, the missing probability is assumed to be distributed like that of
        the candidates: the result is the share of the candidates that contain the label.
        """
        if self.label_probs is not None:
            return self._bounded
        return np.minimum(self._sum_by_label(self._shares, n_labels), 1.0).astype(np.float32)

    @cached_property
    def _bounded(self) -> Floats32:
        assert self.label_probs is not None
        return self.bound_marginals(self.label_probs)

    def bound_marginals(self, estimated: Floats | Floats32) -> Floats32:
        """Move estimates of p(label | document), (n, L), to what the candidates leave possible."""
        least = self._sum_by_label(np.exp(self.log_probs), estimated.shape[1])
        most = np.minimum(least + self.missing_mass()[:, None], 1.0)
        return np.clip(estimated, np.minimum(least, 1.0), most).astype(np.float32)

    def _sum_by_label(self, values: Floats, n_labels: int) -> Floats:
        """Sum the values (n, K) of the candidates that contain each label: (n, L)."""
        n = len(self.labels)
        document, rank, place = np.nonzero(self.labels >= 0)
        at = document * n_labels + self.labels[document, rank, place]
        sums = np.bincount(at, weights=values[document, rank], minlength=n * n_labels)
        return np.asarray(sums.reshape(n, n_labels))

    def missing_mass(self) -> Floats:
        """Return the total probability of the sets that are not candidates: (n,)."""
        return np.asarray(np.clip(1 - np.exp(self.log_probs).sum(axis=1), 0.0, 1.0))

    def label_size_probs(self, n_labels: int, also: Sequence[int] = ()) -> LabelSizeProbs:
        """Return p(label in the set, size of the set).

        It is summed over the candidates. If the search made an estimate of p(label), the rest of
        p(label) belongs to the sets that are missing. If not, they are like the candidates. The
        labels are those of the document's candidates, likely ones, and those in `also`.
        """
        n, K, S = self.labels.shape
        asked = np.broadcast_to(np.array(also, dtype=np.int32), (n, len(also)))
        marginals, weights = None, self._shares
        if self.label_probs is not None:
            marginals, weights = self.marginals(n_labels), np.exp(self.log_probs)
            asked = list_likely_labels(marginals, also)
        ids = np.concatenate([self.labels.reshape(n, K * S), asked], axis=1)
        labels, place = list_distinct(ids)
        M, Z = labels.shape[1], max(S, 1)
        size = (self.labels >= 0).sum(axis=2)  # (n, K)
        document, rank, column = np.nonzero(self.labels >= 0)
        at = place[document, rank * S + column]
        sums = np.bincount(
            (document * M + at) * Z + size[document, rank] - 1,
            weights=weights[document, rank],
            minlength=n * M * Z,
        )
        probs = sums.astype(np.float64).reshape(n, M, Z)
        empty = np.where(size == 0, weights, 0.0).sum(axis=1)
        if marginals is None:
            return LabelSizeProbs(labels, probs, empty)
        mass = self.missing_mass()
        of_labels = np.take_along_axis(marginals, np.maximum(labels, 0), axis=1)
        excess = (np.where(labels >= 0, of_labels, 0.0) - probs.sum(axis=2)).clip(0)
        missing = size_probs_of_missing(np.where(mass[:, None] > LEAST_MISSING, excess, 0.0), mass)
        Z = max(Z, missing.shape[2])
        probs = np.pad(probs, ((0, 0), (0, 0), (0, Z - probs.shape[2])))
        probs[:, :, : missing.shape[2]] += missing
        return LabelSizeProbs(labels, probs, empty)

    def log_probs_of(self, label_sets: Ids) -> Floats:
        """Return log p of given sets (n, G, S), packed: (n, G), NaN if a set is not a candidate."""
        width = max(self.labels.shape[-1], label_sets.shape[-1])
        own, given = widen(self.labels, width), widen(label_sets, width)
        found = np.full(given.shape[:2], np.nan)
        for rank in range(own.shape[1]):
            is_same = (own[:, rank, None] == given).all(axis=2)
            is_same &= self.log_probs[:, rank, None] > -np.inf
            found = np.where(is_same, self.log_probs[:, rank, None], found)
        return found

    @property
    def _shares(self) -> Floats:
        """Each candidate's share of the total probability of the candidates: (n, K)."""
        best = np.maximum(self.log_probs.max(axis=1, keepdims=True, initial=-np.inf), -1e300)
        shares = np.exp(self.log_probs - best)
        return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300))


def list_distinct(ids: Ids) -> tuple[Ids, Ints]:
    """Return the distinct ids of each row (n, W), ascending, and the place of each id among them.

    The distinct ids are (n, M), padded with -1; the places (n, W).
    """
    order = np.argsort(ids, axis=1, kind="stable")
    ascending = np.take_along_axis(ids, order, axis=1)
    is_first = ascending >= 0
    is_first[:, 1:] &= ascending[:, 1:] != ascending[:, :-1]
    place_in_order = np.cumsum(is_first, axis=1) - 1
    labels = np.full((len(ids), int(place_in_order.max(initial=0)) + 1), -1, dtype=np.int32)
    row, column = np.nonzero(is_first)
    labels[row, place_in_order[row, column]] = ascending[row, column]
    place = np.empty_like(place_in_order)
    np.put_along_axis(place, order, place_in_order, axis=1)
    return labels, place


def widen(labels: Ids, width: int) -> Ids:
    """Pad sets (..., S) with -1 to at least a given width."""
    room = [(0, 0)] * (labels.ndim - 1) + [(0, max(width - labels.shape[-1], 0))]
    return np.pad(labels, room, constant_values=-1)


def join_sets(parts: Sequence[Ids]) -> Ids:
    """Put the sets of each document, (n, K, S) in each part, side by side."""
    width = max(each.shape[2] for each in parts)
    return np.concatenate([widen(each, width) for each in parts], axis=1)


def rank_sets(labels: Ids, log_probs: Floats) -> tuple[Ids, Floats]:
    """Return sets (n, K, S) and their log p (n, K) in descending order of probability."""
    order = np.argsort(-log_probs, axis=1, kind="stable")
    labels = np.take_along_axis(labels, order[:, :, None], axis=1)
    return labels, np.take_along_axis(log_probs, order, axis=1)


def pack_labels(labels: Ids) -> Ids:
    """Sort the ids of each set (..., S), with -1 last, and remove columns that no set uses.

    Example:
        >>> pack_labels(np.array([[-1, 5, 2], [-1, -1, 7]], dtype=np.int32)).tolist()
        [[2, 5], [7, -1]]
    """
    last = np.iinfo(np.int32).max
    ascending = np.sort(np.where(labels < 0, last, labels), axis=-1)
    width = max(int((labels >= 0).sum(-1).max(initial=0)), 1)
    ascending = ascending[..., :width]
    return np.where(ascending == last, -1, ascending).astype(np.int32)


def list_columns(is_chosen: Bools) -> Ids:
    """Return the chosen columns of each row (n, L): (n, S), padded with -1.

    Example:
        >>> list_columns(np.array([[True, False, True], [False, True, False]])).tolist()
        [[0, 2], [1, -1]]
    """
    rows, columns = np.nonzero(is_chosen)
    position = np.cumsum(is_chosen, axis=1)[rows, columns] - 1
    found = np.full((len(is_chosen), int(position.max(initial=0)) + 1), -1, dtype=np.int32)
    found[rows, position] = columns
    return found


def sum_over_sets(values: npt.NDArray[Any], label_sets: Ids) -> Floats:
    """Sum the values (n, L) of the labels of each set (n, G, S), padded with -1: (n, G)."""
    document = np.arange(len(values))[:, None, None]
    with_nothing = np.pad(values, ((0, 0), (0, 1)))  # -1 reads the last
    return np.asarray(with_nothing[document, label_sets].sum(axis=2))


def log_sigmoid(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return log p(label) from its log-odds; log p(no label) is that of the negated log-odds."""
    return np.asarray(-np.logaddexp(0, -logits))
