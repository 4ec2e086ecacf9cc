"""One document with its labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from setrnn.errors import DataError


@dataclass(frozen=True, slots=True)
class Example:
    """A document, its set of labels, and its features (the paper's user tags).

    Of a document to be tagged, some labels may be known to be right (present) or wrong (absent).
    An empty label set is legal. Repeated labels are merged; their order carries no
    meaning but is kept, so that a file converted and read again is the same.
    """

    id: str
    text: str
    labels: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Merge repeats, and refuse a lone string where a collection is meant."""
        object.__setattr__(self, "labels", _merged("labels", self.labels))
        for name in ("features", "present", "absent"):
            if getattr(self, name) != ():
                object.__setattr__(self, name, _merged(name, getattr(self, name)))


def _merged(name: str, values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise DataError(f"'{name}' must be a collection of strings, got {values!r}.")
    return tuple(dict.fromkeys(values))
