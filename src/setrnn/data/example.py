"""One document with its labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from setrnn.errors import DataError


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """Labels of one document that are known before it is tagged.

    Attributes:
        present: labels known to be right.
        absent: labels known to be wrong.

    Example:
        >>> KnownLabels(present=["sport", "sport"], absent=["politics"])
        KnownLabels(present=('sport',), absent=('politics',))
    """

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Merge repeats."""
        _merge_repeats(self, "present", "absent")


@dataclass(frozen=True, slots=True)
class Example:
    """A document, its set of labels, and its features (the paper's user tags).

    An empty label set is legal. Repeated labels are merged. The order of labels has no
    meaning but is kept, so that converting a file and reading it again changes nothing.

    Labels in `unknown` count neither for nor against the document. With `complete` false, this is
    true of every label that is not given.

    Example:
        >>> example = Example("1", "Rates rise again", ["economy", "economy", "markets"])
        >>> example.labels
        ('economy', 'markets')
    """

    id: str
    text: str
    labels: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    known: KnownLabels | None = None  # of a document to be tagged; None if not read
    # The whole row that it was read from, to be written again; None if not kept.
    columns: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    unknown: tuple[str, ...] = ()
    complete: bool = True

    def __post_init__(self) -> None:
        """Merge repeats; raise DataError if a label is given and unknown."""
        _merge_repeats(self, "labels", "features", "unknown")
        for label in self.unknown:
            if label in self.labels:
                raise DataError(
                    f"Document '{self.id}': '{label}' is given and unknown. Remove it from one."
                )

    @property
    def is_incomplete(self) -> bool:
        """Whether some label may or may not belong to the document."""
        return bool(self.unknown) or not self.complete

    def relabel(self, labels: tuple[str, ...], unknown: tuple[str, ...]) -> Example:
        """Return the document with other labels; those that are given are not unknown."""
        unknown = tuple(label for label in unknown if label not in labels)
        return replace(self, labels=labels, unknown=unknown)


def name_example(examples: Sequence[Example], index: int) -> str:
    """Return the name of one of some documents, for errors."""
    return f"Document '{examples[index].id}'"


def rename_labels(labels: tuple[str, ...], label_map: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return labels by their other names; those whose name is "" are dropped.

    The map need not repeat spaces around labels.

    Example:
        >>> rename_labels(("Dramas", "TBD", "Comedies"), {"Dramas": "Drama", "TBD": ""})
        ('Drama', 'Comedies')
    """
    if label_map is None:
        return labels
    renamed = (label_map.get(label, label_map.get(label.strip(), label)) for label in labels)
    return tuple(label for label in renamed if label)


def _merge_repeats(instance: object, *names: str) -> None:
    """Make each field a tuple without repeats; raise if it is a single string."""
    for name in names:
        values: Iterable[str] = getattr(instance, name)
        if values == ():
            continue
        if isinstance(values, str):
            raise DataError(f"'{name}' must be a collection of strings, got {values!r}.")
        object.__setattr__(instance, name, tuple(dict.fromkeys(values)))
