"""Mixtures: p(set) = sum of w_i p_i(set) over members of any kind, with weights per rule."""

# n documents, I members, K candidates, L labels, G given sets, S labels of the largest set,
# M labels that matter to a document, Z sizes of sets

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.config import Config, MixtureConfig
from setrnn.data.disk import select_prefix
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import split_rows
from setrnn.methods import METHODS, Method
from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    Ints,
    LabelSizeProbs,
    SetCandidates,
    join_sets,
    list_distinct,
    pack_labels,
    rank_sets,
)
from setrnn.systems.kept import KeptTokens
from setrnn.systems.known import Known, make_completions
from setrnn.systems.limits import set_keys
from setrnn.systems.predicting import group_sets
from setrnn.systems.relabelled import LABEL_IDS, RelabelledSystem
from setrnn.systems.rules import MANY_SETS
from setrnn.systems.system import Arrays, System

WEIGHTS, N_LABELS = "mixture.weights", "mixture.n_labels"  # arrays
FIRST = 1e6  # more than any log-probability: the best set of a member is always kept


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


@dataclass(frozen=True)
class MixtureSystem(System):
    """Trained systems that predict together.

    A set may have as many labels as the member that allows the fewest. Members that read the same
    tokenizer read the same part of a row of tokens.
    """

    systems: tuple[System, ...]
    parts: tuple[int, ...]  # the tokenizer of each member
    weights: Weights
    n_labels: int

    def for_rule(self, rule: str) -> MixtureSystem:
        """Return the mixture with the weights of a rule."""
        weights = self.weights.for_rule(rule)
        return self if weights is self.weights else replace(self, weights=weights)

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Unite the most probable sets of all members; each member scores all of them.

        The union has the best set of each member, and the most probable others.
        """
        n_sets = max(n_sets, MANY_SETS)
        rows = self._split(KeptTokens.of(tokens))
        found = [
            system.candidates(part, n_sets, known=known)
            for system, part in zip(self.systems, rows, strict=True)
        ]
        labels, is_set = unite(found, max(n_sets, len(found)), self.n_labels)
        parts = zip(self.systems, rows, found, strict=True)
        log_probs = np.stack([_score(*part, labels) for part in parts])
        log_probs = np.where(is_set, log_probs, -np.inf)
        pool = Pool(labels, log_probs, tuple(found))
        return MixtureCandidates.of(pool, self.weights, known)

    def member_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (I, n, G) of given sets (n, G, S) by each member."""
        parts = zip(self.systems, self._split(tokens), strict=True)
        return np.stack([system.set_log_probs(rows, label_sets) for system, rows in parts])

    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        return self.log_probs_by_rule(tokens, label_sets, [""])[0]

    def log_probs_by_rule(
        self, tokens: Ragged, label_sets: Ids, rules: Sequence[str]
    ) -> Sequence[Floats]:
        """Return log p (n, G) of given sets, by each of several rules: members are asked once."""
        by_rule = [self.weights.for_rule(rule) for rule in rules]
        rows = self._split(tokens)
        found = {
            member: self.systems[member].set_log_probs(rows[member], label_sets)
            for member in sorted({member for each in by_rule for member in each.used})
        }
        return [
            Weights(each.current[each.used]).mix(np.stack([found[member] for member in each.used]))
            for each in by_rule
        ]

    def marginals(self, tokens: Ragged, candidates: SetCandidates | None = None) -> Floats32:
        """Return p(label | document), (n, L): the mean of the members' own."""
        found = self.candidates(tokens, MANY_SETS) if candidates is None else candidates
        return found.marginals(self.n_labels)

    def _split(self, tokens: Ragged) -> list[Ragged]:
        """Return the tokens that each member reads."""
        n_parts = max(self.parts) + 1
        if isinstance(tokens, KeptTokens):
            parts = tokens.split(n_parts)
        else:
            parts = split_rows(tokens, n_parts)
        return [parts[number] for number in self.parts]

    @property
    def max_labels(self) -> int | None:
        """The most labels that a set may have: the least of the members' limits."""
        limits = [each.max_labels for each in self.systems if each.max_labels is not None]
        return min(limits, default=None)

    @property
    def device_name(self) -> str:
        """Where the members compute: a GPU if one of them does."""
        names = (each.device_name for each in self.systems)
        return next((name for name in names if name != "cpu"), "cpu")

    def with_beam_width(self, beam_width: int) -> MixtureSystem | None:
        """Return the mixture with another beam width in all members that search."""
        wider = [each.with_beam_width(beam_width) for each in self.systems]
        if all(each is None for each in wider):
            return None
        pairs = zip(wider, self.systems, strict=True)
        return replace(self, systems=tuple(new or old for new, old in pairs))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the weights of the mixture, and the arrays of all members."""
        arrays: dict[str, npt.NDArray[Any]] = {
            WEIGHTS: self.weights.current,
            N_LABELS: np.array([self.n_labels]),
        }
        arrays |= {f"{WEIGHTS}.{rule}": each for rule, each in self.weights.by_rule.items()}
        for member, system in enumerate(self.systems):
            prefix = f"members.{member}."
            arrays |= {prefix + name: array for name, array in system.arrays().items()}
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, method: Method, config: Config, device: str
    ) -> MixtureSystem:
        """Rebuild all members from their arrays and settings."""
        from setrnn.systems.registry import find_system  # it imports this file

        if not isinstance(config, MixtureConfig):
            raise TypeError("the settings have no members")
        by_rule = {
            rule: np.asarray(array, dtype=np.float64)
            for rule, array in select_prefix(f"{WEIGHTS}.", arrays).items()
        }
        weights = Weights(np.asarray(arrays[WEIGHTS], dtype=np.float64), by_rule)
        if len(weights.current) != len(config.members):
            raise ValueError(f"{len(weights.current)} weights for {len(config.members)} members")
        systems = []
        for number, member in enumerate(config.members):
            if member.method not in METHODS:
                raise ValueError(f"a member is a '{member.method}', which this setrnn lacks")
            own = select_prefix(f"members.{number}.", arrays)
            kind = METHODS[member.method]
            build = RelabelledSystem if LABEL_IDS in own else find_system(kind)
            systems.append(build.from_arrays(own, kind, member.config, device))
        parts = tuple(member.tokenizer for member in config.members)
        n_labels = np.asarray(arrays[N_LABELS])
        if n_labels.shape != (1,) or n_labels.dtype.kind != "i":
            raise ValueError(f"{N_LABELS} must be one whole number")
        return cls(tuple(systems), parts, weights, int(n_labels[0]))

    def check_sizes(self, n_tokens: int, n_labels: int) -> None:
        """Raise ValueError if the mixture is of other labels."""
        others = [each for each in self.systems if isinstance(each, RelabelledSystem)]
        if any(n != n_labels for n in (self.n_labels, *(len(each.own_ids) for each in others))):
            raise ValueError(f"they are not for the {n_labels:,} labels of the list")


def relabel(system: System, own_ids: npt.NDArray[Any] | None) -> System:
    """Return a system that has these ids for the labels; None if they are the same."""
    if own_ids is None or np.array_equal(own_ids, np.arange(len(own_ids))):
        return system
    return RelabelledSystem(system, np.asarray(own_ids, dtype=np.int32))


def unite(found: Sequence[SetCandidates], n_sets: int, n_labels: int) -> tuple[Ids, Bools]:
    """Return the distinct sets that members found, (n, K, S), and which of them are sets, (n, K).

    At most `n_sets` are kept per document: the best set of each member, then those with the
    highest probability by any member.
    """
    labels = join_sets([each.labels for each in found])
    value = np.concatenate([_rank(each) for each in found], axis=1)
    keys = set_keys(labels, n_labels)
    order = np.lexsort((-value, keys), axis=1)  # equal sets side by side, the best value first
    keys, value = (np.take_along_axis(each, order, axis=1) for each in (keys, value))
    # A place without a set has the key of the empty set, and the least value.
    value[:, 1:][keys[:, 1:] == keys[:, :-1]] = -np.inf
    best = np.argsort(-value, axis=1, kind="stable")[:, :n_sets]
    value = np.take_along_axis(value, best, axis=1)
    K = max(int((value > -np.inf).sum(axis=1).max(initial=0)), 1)
    chosen = np.take_along_axis(order, best[:, :K], axis=1)
    is_set = value[:, :K] > -np.inf
    labels = np.take_along_axis(labels, chosen[:, :, None], axis=1)
    return pack_labels(np.where(is_set[:, :, None], labels, -1)), is_set


def _rank(found: SetCandidates) -> Floats:
    """Return log p of the candidates, (n, K), with the first above all others."""
    bonus = np.where(np.arange(found.log_probs.shape[1]) == 0, FIRST, 0.0)
    return np.asarray(found.log_probs + bonus)  # -inf stays


def _score(system: System, tokens: Ragged, found: SetCandidates, label_sets: Ids) -> Floats:
    """Return log p (n, K) of sets by a member, which is asked only for what it did not find."""
    log_probs: Floats = found.log_probs_of(label_sets)
    row, column = np.nonzero(np.isnan(log_probs))
    if len(row):
        documents, sets, _, rank = group_sets(row, label_sets[row, column])
        # Of all documents, so that what was computed for their search is used again.
        asked = np.full((len(label_sets), *sets.shape[1:]), -1, dtype=np.int32)
        asked[documents] = sets
        log_probs[row, column] = system.set_log_probs(tokens, asked)[row, rank]
    return log_probs
