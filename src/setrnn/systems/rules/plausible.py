"""The default of a model: the best set by a rule that the model also finds plausible.

The set of highest expected F1 may be one that no document has, such as the labels of two sets of
which either is likely. Therefore log p(set) counts beside the value of the rule, and the set must
agree with what the label sets of training show without an exception: labels that never occur
together, or never without another, in many different sets.
"""

# n documents, K candidates, G sets to choose from or distinct sets of training, L labels, M of them
# that depend on others, S labels of the largest set

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from setrnn.data.groups import Group
from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import Bools, Floats, Ids, join_sets, pack_labels
from setrnn.systems.limits import SeenSets
from setrnn.systems.rules.choice import Choice

# Sets (n, G, S) of the documents to the value of each for a rule, (n, G).
Rate = Callable[[Choice, Ids], Floats]

# The probability that any of the dependencies found is chance, if labels are independent.
BY_CHANCE = 0.01
MAX_LABELS = 2_000  # the most frequent ones are looked at


@dataclass(frozen=True)
class Dependencies:
    """What the label sets of training show without an exception.

    Example: of 80 sets, half have label 0 and the others label 1.

        >>> sets = np.array([[n % 2, 2 + n] for n in range(80)], dtype=np.int32)
        >>> found = Dependencies.of(SeenSets(sets, n_labels=82))
        >>> found.hold(np.array([[0, 2], [0, 1], [2, 3]], dtype=np.int32)).tolist()
        [True, False, True]
    """

    place: npt.NDArray[np.int64]  # (L + 1,) of each label among the M; M for others and for -1
    excludes: Bools  # (M + 1, M + 1) whether two labels never occur together
    implies: Bools  # (M + 1, M + 1) whether the first never occurs without the second

    @classmethod
    def of(cls, seen: SeenSets) -> Dependencies:
        """Find pairs that would occur if labels were independent, and never do."""
        G, L = len(seen.labels), seen.n_labels
        frequent = np.argsort(
            -np.bincount(seen.labels[seen.labels >= 0], minlength=L), kind="stable"
        )
        frequent = frequent[:MAX_LABELS]
        M = len(frequent)
        rank = np.full(L + 1, M)  # of each label among the frequent ones; M for others and for -1
        rank[frequent] = np.arange(M)
        ranks = rank[seen.labels]  # (G, S)
        together = np.zeros((M + 1) ** 2, dtype=np.int64)
        for column in ranks.T:
            pairs = column[:, None] * (M + 1) + ranks
            together += np.bincount(pairs.ravel(), minlength=len(together))
        together = together.reshape(M + 1, M + 1)[:M, :M]
        n = np.diag(together)
        n_pairs = max(len(n) * (len(n) - 1), 1)
        # Without a pair among so many that are expected (Poisson), one is not by chance.
        enough = np.log(n_pairs / BY_CHANCE)
        excludes = (np.outer(n, n) / max(G, 1) > enough) & (together == 0)
        without = n[:, None] - together  # sets with the first label, without the second
        implies = (np.outer(n, G - n) / max(G, 1) > enough) & (without == 0)
        depends = np.flatnonzero((excludes | implies | implies.T).any(axis=1))
        place = np.full(L + 1, len(depends))
        place[frequent[depends]] = np.arange(len(depends))
        at = np.ix_(depends, depends)
        return cls(place, *(np.pad(each[at], (0, 1)) for each in (excludes, implies)))

    def hold(self, label_sets: Ids) -> Bools:
        """Return which sets (..., S) agree with the dependencies: (...)."""
        n_implied = self.implies.sum(axis=1)
        if len(n_implied) == 1:
            return np.ones(label_sets.shape[:-1], dtype=bool)
        places = self.place[label_sets]
        holds = np.ones(label_sets.shape[:-1], dtype=bool)
        for column in range(label_sets.shape[-1]):
            own = places[..., column, None]
            holds &= ~self.excludes[own, places].any(axis=-1)
            holds &= self.implies[own, places].sum(axis=-1) == n_implied[own[..., 0]]
        return holds


def propose_groups(label_sets: Iterable[Collection[str]]) -> list[Group]:
    """Return groups of labels that never meet where chance would bring some together.

    A group allows one of its labels at most, or exactly one if each set has one. The largest group
    is the first.

    Example: each document is of one kind, and has a topic of its own.

        >>> sets = [("news" if n % 2 else "blog", f"topic {n}") for n in range(80)]
        >>> [found] = propose_groups(sets)
        >>> found.labels, found.n, found.exactly
        (('blog', 'news'), 1, True)
    """
    counts = Counter(map(frozenset, label_sets))
    names = [name for name, _ in Counter(chain.from_iterable(counts)).most_common()]
    index = {name: label for label, name in enumerate(names)}
    rows = Ragged.from_lists([sorted(index[name] for name in each) for each in counts])
    found = Dependencies.of(SeenSets(rows.padded(min_width=1), len(names)))
    dependent = np.array(names)[np.argsort(found.place[:-1], kind="stable")]  # by place, (M, ...)
    groups: list[Group] = []
    excludes = found.excludes[:-1, :-1].copy()
    while excludes.any():
        members, fitting = [int(excludes.sum(axis=1).argmax())], excludes.any(axis=1)
        while (fitting := fitting & excludes[members[-1]]).any():
            members.append(int(fitting.argmax()))  # the most frequent
        own = set(dependent[members].tolist())
        is_exact = all(len(own & each) == 1 for each in counts)
        groups.append(Group(sorted(own), 1, is_exact, f"group {len(groups) + 1}"))
        excludes[members] = excludes[:, members] = False
    return sorted(groups, key=lambda group: -len(group.labels))


def choose_plausible(
    choice: Choice, rate: Rate, chosen: Ids, log_probs: Floats
) -> tuple[Ids, Floats]:
    """Choose between the sets (n, S) that a rule chose, of known log p (n,), and the candidates.

    Returns the sets and their log p. Where no set agrees with the dependencies, the chosen one
    stays.
    """
    limits, candidates = choice.limits, choice.candidates
    sets = join_sets([chosen[:, None], candidates.labels])  # (n, G, S), G = 1 + K
    probs = np.concatenate([log_probs[:, None], candidates.log_probs], axis=1)
    is_sound = np.pad(choice.fits, ((0, 0), (1, 0)), constant_values=True) & (probs > -np.inf)
    if limits.dependencies is not None:
        is_sound &= limits.dependencies.hold(sets)
    values = rate(choice, sets) + limits.plausible * np.where(is_sound, probs, 0.0)
    best = np.where(is_sound, values, -np.inf).argmax(axis=1)
    rows = np.arange(len(sets))
    return pack_labels(sets[rows, best]), probs[rows, best]
