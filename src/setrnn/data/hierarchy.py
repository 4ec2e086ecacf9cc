"""Hierarchies of labels: the parents of each label, and sets that are closed upwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from reprlib import repr as shown
from typing import Any

from setrnn.data.example import Example
from setrnn.errors import DataError, list_some
from setrnn.metrics import evaluate_label_sets

N_SHOWN = 5  # labels in a note
# A file of a model may come from anywhere.
MAX_ANCESTORS = 256  # of a label
MAX_PAIRS = 20_000_000  # of a label and an ancestor, once per parent: 10 seconds and 400 MB
# Their names for people.
HIERARCHICAL_MEASURES = {
    "hierarchical_precision": "hierarchical precision",
    "hierarchical_recall": "hierarchical recall",
    "hierarchical_f1": "hierarchical F1",
    "hierarchical_instance_f1": "hierarchical instance-F1",
}
CLOSE_ADVICE = "--close-labels adds the missing parents to the documents before training."


@dataclass(frozen=True)
class Hierarchy:
    """The parents of labels. A label may have several, and a set is closed if it has them all.

    Attributes:
        parents: the parents of each label that has any.
        closes_labels: whether the labels of documents bring their ancestors when they are read.
        keeps_closed: whether predictions are closed: a label brings its ancestors.

    Example:
        >>> tree = Hierarchy({"football": ["sport"], "cup": ["football"]})
        >>> tree.ancestors("cup")
        ('football', 'sport')
        >>> tree.close(["cup", "weather"])
        ('cup', 'weather', 'football', 'sport')
        >>> tree.is_closed(["sport", "football"]), tree.is_closed(["football"])
        (True, False)
    """

    parents: Mapping[str, Sequence[str]]
    closes_labels: bool = False
    keeps_closed: bool = False

    def __post_init__(self) -> None:
        """Raise DataError if a label is above itself."""
        found: dict[str, tuple[str, ...]] = {}
        for label, above in self.parents.items():
            has_several = isinstance(above, Iterable) and not isinstance(above, str | Mapping)
            rows: tuple[Any, ...] = tuple(above) if has_several else (above,)
            if not all(isinstance(each, str) and each for each in (label, *rows)):
                raise DataError(f"The parents of {label!r:.60} must be labels, got {above!r:.60}.")
            if label in rows:
                raise DataError(f"{shown(label)} is its own parent. Remove that row.")
            if rows:
                found[label] = tuple(dict.fromkeys(rows))
        object.__setattr__(self, "parents", found)
        try:
            self._ancestors  # noqa: B018 (computed once)
        except CycleError as error:
            names = " > ".join(map(shown, error.args[1][: N_SHOWN + 1]))
            raise DataError(
                f"The hierarchy has a cycle: {names}. Remove one of its rows."
            ) from None

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels that it names, those with parents first."""
        return tuple(
            dict.fromkeys([*self.parents, *(p for row in self.parents.values() for p in row)])
        )

    @cached_property
    def _ancestors(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        n_pairs = 0
        for label in TopologicalSorter(self.parents).static_order():
            own = self.parents.get(label, ())
            n_pairs += len(own) + sum(len(found[parent]) for parent in own)
            if n_pairs > MAX_PAIRS:
                raise DataError(
                    f"The hierarchy is too large: its labels have more than {MAX_PAIRS:,} "
                    "ancestors, counted once per parent. Remove some rows."
                )
            found[label] = tuple(dict.fromkeys([*own, *chain(*(found[each] for each in own))]))
            if len(found[label]) > MAX_ANCESTORS:
                raise DataError(
                    f"{shown(label)} has more than {MAX_ANCESTORS} ancestors. Remove some rows."
                )
        return found

    def ancestors(self, label: str) -> tuple[str, ...]:
        """Return the ancestors of a label, its parents first."""
        return self._ancestors.get(label, ())

    def nearest(self, labels: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the closest ancestors of labels that are among the labels themselves.

        A set of such labels has all their ancestors if it has the closest ones of each.
        """
        found: dict[str, tuple[str, ...]] = {}
        for label in self._ancestors:  # those above a label come before it
            own = (
                (each,) if each in labels else found[each] for each in self.parents.get(label, ())
            )
            found[label] = tuple(dict.fromkeys(chain.from_iterable(own)))
        return {label: found[label] for label in labels if label in found}

    def close(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Return labels with all their ancestors."""
        own = dict.fromkeys(labels)
        if self.is_closed(own):
            return tuple(own)
        return tuple(own | dict.fromkeys(each for name in own for each in self.ancestors(name)))

    def is_closed(self, labels: Iterable[str]) -> bool:
        """Return whether a set has the parents of all its labels."""
        own = set(labels)
        return all(each in own for label in own for each in self.parents.get(label, ()))

    def close_examples(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield documents; if `closes_labels`, each label brings its ancestors."""
        for example in examples:
            closed = self.close(example.labels) if self.closes_labels else example.labels
            yield example if closed == example.labels else example.relabel(closed, example.unknown)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "parents": {label: list(above) for label, above in self.parents.items()},
            "closes_labels": self.closes_labels,
            "keeps_closed": self.keeps_closed,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> Hierarchy | None:
        """Read what `as_dict` wrote; raise ValueError if it is damaged. None stays None."""
        if values is None:
            return None
        try:
            flags = values["closes_labels"], values["keeps_closed"]
            if not all(isinstance(each, bool) for each in flags):
                raise TypeError("flags are true or false")
            return cls(dict(values["parents"]), *flags)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the hierarchy is damaged: {error!r:.80}") from error


def list_open(
    hierarchy: Hierarchy, label_sets: Iterable[Collection[str]], labels: Collection[str]
) -> list[tuple[str, str]]:
    """Return what is missing in sets that lack an ancestor which is one of `labels`.

    For each such set, return a label and its ancestor.
    """
    above = hierarchy.nearest(labels)
    gaps = (
        next(((name, a) for name in row for a in above.get(name, ()) if a not in row), None)
        for row in map(dict.fromkeys, label_sets)
    )
    return [gap for gap in gaps if gap is not None]


def describe_fit(hierarchy: Hierarchy, label_sets: Sequence[Collection[str]]) -> list[str]:
    """Say how a hierarchy fits the training documents; raise DataError if it names none of theirs.

    Example:
        >>> tree = Hierarchy({"football": ["sport"]})
        >>> describe_fit(tree, [["sport", "football"], ["sport"]])[0][:46]
        'Hierarchy: 1 of 2 labels are below another. Th'
    """
    labels = Counter(chain.from_iterable(label_sets))
    gaps = list_open(hierarchy, label_sets, labels)
    n_below = sum(any(a in labels for a in hierarchy.ancestors(name)) for name in labels)
    unknown = [label for label in hierarchy.labels if label not in labels]
    if len(unknown) == len(hierarchy.labels):
        most_frequent = max(labels, key=labels.__getitem__, default="")
        raise DataError(
            f"The hierarchy names none of the {len(labels):,} labels of the training documents: "
            f"it has {shown(hierarchy.labels[0])}, they have {shown(most_frequent)}. Write the "
            "labels as the documents do."
        )
    lines = []
    if unknown:
        some = list_some([*map(shown, unknown)], N_SHOWN)
        lines.append(
            f"The hierarchy names labels that no training document has: {some}. They are not "
            "predicted."
        )
    text = f"Hierarchy: {n_below:,} of {len(labels):,} labels are below another. "
    if not gaps:
        return [*lines, f"{text}The training labels are closed upwards, so predictions are too."]
    child, parent = map(shown, gaps[0])
    return [
        *lines,
        f"{text}{len(gaps) / len(label_sets):.1%} of the training documents have a label "
        f"without one above it (such as {child} without {parent}), so predictions are not kept "
        f"closed. {CLOSE_ADVICE}",
    ]


@dataclass(frozen=True)
class HierarchicalScores:
    """The measures of sets with their ancestors (Kiritchenko et al. 2006).

    Precision, recall and F1 are those of all labels of all documents together; the instance-F1 is
    the mean over documents. A document without labels, true or predicted, has an F1 of 1.
    """

    hierarchical_precision: float
    hierarchical_recall: float
    hierarchical_f1: float
    hierarchical_instance_f1: float


def score_in_hierarchy(
    hierarchy: Hierarchy,
    true_sets: Iterable[Iterable[str]],
    predicted_sets: Iterable[Iterable[str]],
) -> HierarchicalScores:
    """Measure predicted sets; both kinds of sets are closed first.

    Example:
        >>> tree = Hierarchy({"football": ["sport"], "hockey": ["sport"]})
        >>> scores = score_in_hierarchy(tree, [["football"]], [["hockey"]])
        >>> scores.hierarchical_precision, scores.hierarchical_recall
        (0.5, 0.5)
    """
    truth, predicted = (
        [hierarchy.close(row) for row in sets] for sets in (true_sets, predicted_sets)
    )
    names = dict.fromkeys(name for row in predicted for name in row)
    found = evaluate_label_sets(truth, predicted, [*names] or [""])
    return HierarchicalScores(
        found.micro_precision, found.micro_recall, found.micro_f1, found.instance_f1
    )
