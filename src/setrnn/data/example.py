"""One document with its labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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

    def __post_init__(self) -> None:
        """Merge repeats."""
        _merge_repeats(self, "labels", "features")


def name_example(examples: Sequence[Example], index: int) -> str:
    """Return the name of one of some documents, for errors."""
    return f"Document '{examples[index].id}'"


def _merge_repeats(instance: object, *names: str) -> None:
    """Make each field a tuple without repeats; raise if it is a single string."""
    for name in names:
        values: Iterable[str] = getattr(instance, name)
        if values == ():
            continue
        if isinstance(values, str):
            raise DataError(f"'{name}' must be a collection of strings, got {values!r}.")
        object.__setattr__(instance, name, tuple(dict.fromkeys(values)))
