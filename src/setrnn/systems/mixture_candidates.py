"""The candidates of a mixture, and the weights of its members by rule."""

# n documents, I members, K candidates, L labels, G given sets, S labels of the largest set,
# M labels that matter to a document, Z sizes of sets

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from setrnn.systems.candidates import (
    Floats,
    Floats32,
    Ids,
    Ints,
    LabelSizeProbs,
    SetCandidates,
    list_distinct,
    rank_sets,
)
from setrnn.systems.known import Known, make_completions


@dataclass(frozen=True)
class Weights:
    """The weights of the members: those of some rules, and the default of all others.

    Example:
        >>> weights = Weights(np.array([0.5, 0.5]), {"f1": np.array([0.2, 0.8])})
        >>> weights.for_rule("f1").current.tolist(), weights.for_rule("set").current.tolist()
        ([0.2, 0.8], [0.5, 0.5])
    """

    current: Floats  # (I,) at least 0; their sum is 1
    by_rule: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError if weights are negative or do not add up to 1."""
        for each in (self.current, *self.by_rule.values()):
            is_share = each.shape == self.current.shape == (each.size,) and (each >= 0).all()
            if not is_share or not abs(each.sum() - 1) < 1e-6:
                raise ValueError("the weights of a mixture are shares, one per member")

    @property
    def used(self) -> list[int]:
        """The members with a weight above 0."""
        return [int(member) for member in np.flatnonzero(self.current > 0)]

    def for_rule(self, rule: str) -> Weights:
        """Return the weights with those of a rule as the current ones."""
        if rule not in self.by_rule or np.array_equal(self.by_rule[rule], self.current):
            return self
        return replace(self, current=self.by_rule[rule])

    def mix(self, log_probs: Floats) -> Floats:
        """Return log p of sets from log p by each member, (I, ...)."""
        shares = log_probs[self.used] + np.log(self.current[self.used]).reshape(
            -1, *[1] * (log_probs.ndim - 1)
        )
        with np.errstate(invalid="ignore"):  # what a member does not know is NaN
            return np.asarray(np.logaddexp.reduce(shares, axis=0))

    def average(self, values: Sequence[Any] | Mapping[int, Any]) -> Floats:
        """Return the weighted mean of an array of each member that is used."""
        first, *others = self.used
        total = self.current[first] * values[first].astype(np.float64)
        for member in others:
            total += self.current[member] * values[member]
        return np.asarray(total)


@dataclass(frozen=True)
class Pool:
    """Sets of each document, with their probability by each member."""

    labels: Ids  # (n, K, S) ascending ids, padded with -1
    log_probs: Floats  # (I, n, K), -inf where a document has fewer than K sets
    found: tuple[SetCandidates, ...]  # by each member
    _marginals: dict[int, Floats32] = field(default_factory=dict, init=False, repr=False)
    _tables: dict[Any, LabelSizeProbs] = field(default_factory=dict, init=False, repr=False)

    def take(self, rows: Ints) -> Pool:
        """Return the sets of some of the documents."""
        found = tuple(each.take(rows) for each in self.found)
        return Pool(self.labels[rows], self.log_probs[:, rows], found)

    def marginals(self, member: int, n_labels: int) -> Floats32:
        """Return p(label | document) by a member, (n, L): computed once for all rules.

        An estimate is moved to what the sets that any member found leave possible.
        """
        if member not in self._marginals:
            found = self.found[member]
            probs = found.marginals(n_labels)
            if found.label_probs is not None:
                probs = SetCandidates(self.labels, self.log_probs[member]).bound_marginals(probs)
            self._marginals[member] = probs
        return self._marginals[member]

    def label_size_probs(self, member: int, n_labels: int, also: Sequence[int]) -> LabelSizeProbs:
        """Return p(label in the set, size of the set) by a member: computed once for all rules."""
        key = (member, *also)
        if key not in self._tables:
            self._tables[key] = self.found[member].label_size_probs(n_labels, also)
        return self._tables[key]


@dataclass(frozen=True)
class MixtureCandidates(SetCandidates):
    """The most probable sets of a mixture; other weights give another order of the same sets.

    Marginals, and the probabilities of labels and sizes, are the means of those of the members.
    With known labels they follow from the sets, because p(known) differs from member to member.
    """

    of_documents = (*SetCandidates.of_documents, "pool", "known")
    pool: Pool
    weights: Weights
    known: Known | None = None

    @classmethod
    def of(cls, pool: Pool, weights: Weights, known: Known | None) -> MixtureCandidates:
        """Rank the sets by the current weights."""
        labels, log_probs = rank_sets(pool.labels, weights.mix(pool.log_probs))
        labels = np.where(log_probs[:, :, None] > -np.inf, labels, -1)
        if known is not None:
            labels = make_completions(SetCandidates(labels, log_probs), known).labels
        return cls(labels, log_probs, pool, weights, known)

    def for_rule(self, rule: str) -> MixtureCandidates:
        """Return the candidates by the weights of a rule."""
        weights = self.weights.for_rule(rule)
        return self if weights is self.weights else self.of(self.pool, weights, self.known)

    def marginals(self, n_labels: int) -> Floats32:
        """Return p(label | document), (n, L)."""
        if self.known is not None:
            return super().marginals(n_labels)
        used, pool = self.weights.used, self.pool
        own = {member: pool.marginals(member, n_labels) for member in used}
        mean = self.weights.average(own)
        return np.minimum(mean, 1.0).astype(np.float32)

    def missing_mass(self) -> Floats:
        """Return the total probability of the sets that the members did not find: (n,)."""
        if self.known is not None:
            return super().missing_mass()
        return self.weights.average([each.missing_mass() for each in self.pool.found])

    def label_size_probs(self, n_labels: int, also: Sequence[int] = ()) -> LabelSizeProbs:
        """Return p(label in the set, size of the set) for the labels that matter to a member."""
        if self.known is not None:
            return super().label_size_probs(n_labels, also)
        used = self.weights.used
        tables = [self.pool.label_size_probs(member, n_labels, also) for member in used]
        labels, place = list_distinct(np.concatenate([each.labels for each in tables], axis=1))
        probs = np.zeros((*labels.shape, max(each.probs.shape[2] for each in tables)))  # (n, M, Z)
        empty, start = np.zeros(len(labels)), 0
        for weight, table in zip(self.weights.current[used], tables, strict=True):
            document, column = np.nonzero(table.labels >= 0)
            row, n_sizes = place[document, start + column], table.probs.shape[2]
            probs[document, row, :n_sizes] += weight * table.probs[document, column]
            empty += weight * table.empty
            start += table.labels.shape[1]
        return LabelSizeProbs(labels, probs, empty)

    def log_probs_of(self, label_sets: Ids) -> Floats:
        """Return log p of given sets (n, G, S), packed: (n, G), NaN if a member does not know it.

        A set that is a candidate is known.
        """
        log_probs = super().log_probs_of(label_sets)
        rows = np.flatnonzero(np.isnan(log_probs).any(axis=1))
        if self.known is not None or not len(rows):
            return log_probs
        used, some = self.weights.used, label_sets[rows]
        found = [self.pool.found[member].take(rows).log_probs_of(some) for member in used]
        mixed = Weights(self.weights.current[used]).mix(np.stack(found))
        log_probs[rows] = np.where(np.isnan(log_probs[rows]), mixed, log_probs[rows])
        return log_probs
