"""Limits on predicted sets: size, labels, only sets seen in training, closed in a hierarchy."""

# n documents, K sets per document, L labels, M of them, G seen sets, H groups,
# S labels of the largest set

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.groups import Group
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError, nearest_name
from setrnn.systems.candidates import Bools, Floats, Ids, Ints

if TYPE_CHECKING:
    from setrnn.systems.closure import Closure
    from setrnn.systems.rules.plausible import Dependencies

# The weight of log p(set) beside the value of a set, such as its expected F1, for a model without a
# calibration: a calibration chooses it.
PLAUSIBLE = 0.01
_MAX_SCORES = 1 << 24  # documents x seen sets in memory at once


@dataclass(frozen=True)
class Limits:
    """Limits on a predicted set: the rule chooses the best set among those that fit.

    Args:
        min_labels: the least number of labels.
        max_labels: the largest number of labels; None for no limit.
        only_seen: whether only label sets of the training documents fit.
        required: labels that the set must contain.
        forbidden: labels that the set must not contain.
        closed: whether a set must contain, with each label, all labels above it in the hierarchy
            of the model; None for the model's own choice.
        free: whether the rule may choose a set that the model does not find plausible; None for
            the model's own choice: not without a rule, but with one.
        groups: groups of labels, of which the set must have at most or exactly a number. Labels
            that the model does not have are left out.

    Example:
        >>> Limits(min_labels=1, max_labels=5, required=["politics"]).required
        ('politics',)
        >>> Limits(min_labels=3, max_labels=2)
        Traceback (most recent call last):
        ...
        setrnn.errors.ConfigError: min_labels is 3, but max_labels is 2. No set can fit.
    """

    min_labels: int = 0
    max_labels: int | None = None
    only_seen: bool = False
    required: Collection[str] = ()
    forbidden: Collection[str] = ()
    closed: bool | None = None
    free: bool | None = None
    groups: Collection[Group] = ()

    def __post_init__(self) -> None:
        """Raise ConfigError if no set of any model can fit."""
        for name in ("required", "forbidden"):
            labels = getattr(self, name)
            if isinstance(labels, str):
                raise ConfigError(f"{name} must be a list of labels. Write [{labels!r}].")
            object.__setattr__(self, name, tuple(dict.fromkeys(labels)))
        object.__setattr__(self, "groups", tuple(self.groups))
        counts = Counter(label for group in self.groups for label in group.labels)
        if twice := [label for label, n in counts.items() if n > 1]:
            raise ConfigError(f"Label '{twice[0]}' is in two groups. Remove it from one.")
        if not _is_count(self.min_labels):
            raise ConfigError(f"min_labels must be 0 or more, got {self.min_labels}.")
        if self.max_labels is not None and not _is_count(self.max_labels):
            raise ConfigError(f"max_labels must be 0 or more, got {self.max_labels}.")
        both = sorted(set(self.required) & set(self.forbidden))
        if both:
            raise ConfigError(
                f"Label '{both[0]}' is both required and forbidden. Remove it from one."
            )
        for least, what in (
            (self.min_labels, f"min_labels is {self.min_labels}"),
            (len(self.required), f"{len(self.required)} labels are required"),
        ):
            if self.max_labels is not None and least > self.max_labels:
                raise ConfigError(f"{what}, but max_labels is {self.max_labels}. No set can fit.")

    def for_labels(
        self, labels: LabelVocabulary, seen_sets: Ragged | None, closure: Closure | None = None
    ) -> SetLimits:
        """Turn the names into ids of a model; raise ConfigError if none of its sets can fit.

        If sets must be closed, `closure` says what they are.
        """
        required, forbidden = (_encode(each, labels) for each in (self.required, self.forbidden))
        is_allowed = np.ones(len(labels), dtype=bool)
        is_allowed[forbidden] = False
        if closure is not None:
            for label in required:
                if barred := [each for each in closure.ids_above(label) if not is_allowed[each]]:
                    raise ConfigError(
                        f"Label '{labels.names[label]}' is required, but "
                        f"'{labels.names[barred[0]]}', above it in the hierarchy, is forbidden. "
                        "Remove one, or allow sets that are not closed."
                    )
            required = closure.close(required[None])[0] if len(required) else required
            is_allowed[[each for label in forbidden for each in closure.below[label]]] = False
        if self.groups and closure is not None:
            raise ConfigError(
                "Groups and sets that are closed in a hierarchy cannot be combined. Allow sets "
                "that are not closed, or omit the groups."
            )
        n_allowed = int(is_allowed.sum())
        if self.min_labels > n_allowed:
            raise ConfigError(
                f"min_labels is {self.min_labels}, but the model has {len(labels)} labels, "
                f"{len(labels) - n_allowed} of them forbidden. No set can fit."
            )
        most = n_allowed if self.max_labels is None else min(self.max_labels, n_allowed)
        least = max(self.min_labels, len(required))
        if least > most:
            raise ConfigError(
                f"The required labels and those above them are {len(required)}, but max_labels is "
                f"{self.max_labels}. No set can fit."
            )
        limits = SetLimits(len(labels), least, most, required, is_allowed, closure=closure)
        if self.groups:
            groups = GroupLimits.of(self.groups, labels, required, is_allowed)
            ranked = replace(limits, groups=groups).rank(np.zeros((1, len(labels))))
            n_needed, n_room = int((ranked == np.inf).sum()), int((ranked > -np.inf).sum())
            least, most, asked = max(least, n_needed), min(most, n_room), (least, most)
            if least > most:
                raise ConfigError(
                    f"The groups and required labels allow {n_needed} to {n_room} labels, the "
                    f"other limits {asked[0]} to {asked[1]}. No set can fit."
                )
            limits = replace(limits, min_labels=least, max_labels=most, groups=groups)
        if replace(self, closed=None, free=None) == Limits():
            return limits
        return limits.with_seen_sets(seen_sets, self.only_seen)


@dataclass(frozen=True)
class GroupLimits:
    """How many labels of each group a set may have; no label is in two groups."""

    of_label: Ints  # (L + 1,) the group of each label; -1 for none, and for the padding
    least: Ints  # (H,)
    most: Ints  # (H,)

    @classmethod
    def of(
        cls, groups: Collection[Group], labels: LabelVocabulary, required: Ids, is_allowed: Bools
    ) -> GroupLimits:
        """Turn names into ids; raise ConfigError if a group cannot have its number."""
        of_label = np.full(len(labels) + 1, -1)
        for number, group in enumerate(groups):
            ids = [labels.index[name] for name in group.labels if name in labels.index]
            n_allowed, n_required = int(is_allowed[ids].sum()), int(np.isin(ids, required).sum())
            if not ids:
                raise ConfigError(f"{group} names none of the labels of the model.")
            if n_required > group.n:
                raise ConfigError(f"{group}, but {n_required} of its labels are required.")
            if group.exactly and n_allowed < group.n:
                raise ConfigError(f"{group}, but the model may predict {n_allowed} of its labels.")
            of_label[ids] = number
        most = np.array([group.n for group in groups])
        return cls(of_label, np.where([group.exactly for group in groups], most, 0), most)

    def fit(self, label_sets: Ids) -> Bools:
        """Return which sets (..., S) have the number of labels of each group: (...)."""
        of_label = self.of_label[label_sets]
        fits = np.ones(label_sets.shape[:-1], dtype=bool)
        for group, (least, most) in enumerate(zip(self.least, self.most, strict=True)):
            n = (of_label == group).sum(axis=-1)
            fits &= (n >= least) & (n <= most)
        return fits

    def rank(self, values: npt.NDArray[Any], labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values (n, M) of labels (n, M) by which the best k labels fit the groups.

        They are inf for the best labels that a group needs, and -inf for those that it has no room
        for. The groups are disjoint, so that the largest k of the others complete the best set.
        """
        group = self.of_label[np.broadcast_to(labels, values.shape)]
        order = np.lexsort((-values, group), axis=1)
        in_order = np.take_along_axis(group, order, axis=1)
        at = np.arange(values.shape[1])
        is_first = np.diff(in_order, axis=1, prepend=-2) != 0
        place = np.empty_like(order)
        start = np.maximum.accumulate(np.where(is_first, at, 0), axis=1)
        np.put_along_axis(place, order, at - start, axis=1)
        is_needed = (group >= 0) & (place < self.least[group])
        is_beyond = (group >= 0) & (place >= self.most[group])
        return np.where(is_needed, np.inf, np.where(is_beyond, -np.inf, values))


@dataclass(frozen=True)
class SeenSets:
    """The distinct label sets of the training documents."""

    labels: Ids  # (G, S) ascending, padded with -1
    n_labels: int

    @cached_property
    def sizes(self) -> Ints:
        """The number of labels of each set, (G,)."""
        return np.asarray((self.labels >= 0).sum(axis=1))

    @cached_property
    def keys(self) -> npt.NDArray[np.uint64]:
        """The key of each set, (G,): see `set_keys`."""
        return set_keys(self.labels, self.n_labels)

    def by_size(self) -> dict[int, SeenSets]:
        """Group the sets by their size."""
        return {
            int(size): SeenSets(self.labels[self.sizes == size], self.n_labels)
            for size in np.unique(self.sizes)
        }

    def contain(self, label_sets: Ids) -> Bools:
        """Return which of given sets (n, K, S) were seen: (n, K)."""
        return np.isin(set_keys(label_sets, self.n_labels), self.keys)

    def best(self, values: npt.NDArray[Any], n_best: int) -> tuple[Ids, Floats]:
        """Return the sets with the largest sums of their labels' values (n, L), and these sums.

        They are (n, n_best, S) and (n, n_best), in descending order, or fewer if there are fewer.
        """
        n, n_best = len(values), min(n_best, len(self.labels))
        chosen = np.zeros((n, n_best), dtype=np.int64)
        sums = np.zeros((n, n_best))
        step = max(1, _MAX_SCORES // len(self.labels))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            totals = np.asarray((self.members @ values[rows].T).T)  # (n, G)
            some = np.argpartition(-totals, n_best - 1, axis=1)[:, :n_best]
            of_some = np.take_along_axis(totals, some, axis=1)
            order = np.argsort(-of_some, axis=1, kind="stable")
            chosen[rows] = np.take_along_axis(some, order, axis=1)
            sums[rows] = np.take_along_axis(of_some, order, axis=1)
        return self.labels[chosen], sums

    @cached_property
    def members(self) -> scipy.sparse.csr_matrix:
        """The sets as 0 and 1, (G, L)."""
        offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        ones = np.ones(int(offsets[-1]))
        shape = (len(self.labels), self.n_labels)
        return scipy.sparse.csr_matrix((ones, self.labels[self.labels >= 0], offsets), shape=shape)


@dataclass(frozen=True)
class SetLimits:
    """Limits in the ids of a model; at least one set fits."""

    n_labels: int
    min_labels: int  # at least the number of required labels
    max_labels: int  # at most the number of allowed labels
    required: Ids  # ascending
    is_allowed: Bools  # (L,)
    only_seen: bool = False
    seen: SeenSets | None = None  # the seen sets that fit, if they are known
    closure: Closure | None = None  # sets must be closed; so are `required` and what is forbidden
    groups: GroupLimits | None = None  # none together with a closure
    # How much log p(set) counts beside the value of a rule, and what the sets of training show
    # without an exception: see `rules.plausible`.
    plausible: float = 0.0
    dependencies: Dependencies | None = None

    @property
    def is_open(self) -> bool:
        """Whether every set fits."""
        return self.is_free and self.closure is None

    @property
    def is_free(self) -> bool:
        """Whether every set fits that is closed, if it must be."""
        is_any_size = self.min_labels == 0 and self.max_labels == self.n_labels
        is_any_label = bool(self.is_allowed.all()) and self.groups is None
        return is_any_size and is_any_label and not self.only_seen

    def with_seen_sets(self, seen_sets: Ragged | None, only_seen: bool) -> SetLimits:
        """Add the label sets of training that fit."""
        if seen_sets is None or not len(seen_sets):
            if only_seen:
                raise ConfigError(
                    "This model does not contain the label sets seen in training. Train it again, "
                    "or omit only_seen."
                )
            return self
        everything = seen_sets.padded(min_width=1)
        fitting = everything[self.fit(everything[None])[0]]
        if not len(fitting):
            if only_seen:
                raise ConfigError(
                    f"None of the {len(seen_sets):,} label sets seen in training fits the limits. "
                    "Relax them, or omit only_seen."
                )
            return self
        return replace(self, only_seen=only_seen, seen=SeenSets(fitting, self.n_labels))

    def fit(self, label_sets: Ids) -> Bools:
        """Return which sets (n, K, S) are within the limits: (n, K)."""
        if self.is_open:
            return np.ones(label_sets.shape[:2], dtype=bool)
        sizes = (label_sets >= 0).sum(axis=2)
        fits = (sizes >= self.min_labels) & (sizes <= self.max_labels)
        fits &= np.append(self.is_allowed, True)[label_sets].all(axis=2)  # -1 reads the last
        for label in self.required:
            fits &= (label_sets == label).any(axis=2)
        if self.only_seen and self.seen is not None:
            fits &= self.seen.contain(label_sets)
        for each in (self.closure, self.groups):
            if each is not None:
                fits &= each.fit(label_sets)
        return np.asarray(fits)

    def rank(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values (n, L) with inf for needed labels and -inf for those without room."""
        ranked = np.where(self.is_allowed, values, -np.inf)
        ranked[:, self.required] = np.inf
        return ranked if self.groups is None else self.groups.rank(ranked, np.arange(self.n_labels))

    def smallest_set(self) -> list[int]:
        """Return a set of the least size: the required labels, then the most frequent ones."""
        order = -np.arange(self.n_labels, dtype=np.float64)  # ids descend in frequency
        if self.closure is not None:
            order -= self.closure.depths * self.n_labels
        ranked = self.rank(order[None])[0]
        return [*map(int, np.argsort(-ranked, kind="stable")[: self.min_labels])]


def no_limits(n_labels: int) -> SetLimits:
    """Return limits that every set fits."""
    nothing = np.array([], dtype=np.int32)
    return SetLimits(n_labels, 0, n_labels, nothing, np.ones(n_labels, dtype=bool))


def set_keys(label_sets: Ids, n_labels: int) -> npt.NDArray[np.uint64]:
    """Return a number (...) per set (..., S); different sets most probably have different ones."""
    random = np.random.default_rng(0)
    keys = random.integers(0, 2**64, n_labels + 1, dtype=np.uint64)
    keys[-1] = 0  # of -1
    return np.asarray(np.bitwise_xor.reduce(keys[label_sets], axis=-1))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _encode(names: Collection[str], labels: LabelVocabulary) -> Ids:
    for name in names:
        if name not in labels.index:
            near = nearest_name(name, labels.names)
            raise ConfigError(f"The model has no label '{name}'. {near}")
    return np.array(sorted(labels.index[name] for name in names), dtype=np.int32)
