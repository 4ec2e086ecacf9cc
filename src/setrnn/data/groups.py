"""Groups of labels, of which a set has at most or exactly a number."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from setrnn.errors import ConfigError


@dataclass(frozen=True)
class Group:
    """Labels of which each predicted set has at most, or exactly, a number.

    Args:
        labels: the labels; each belongs to at most one group.
        n: how many of them a set has at most.
        exactly: whether it has no fewer, either.
        name: the name of the group in messages.

    Example:
        >>> Group(["news", "blog"], 1, exactly=True, name="kind").labels
        ('news', 'blog')
    """

    labels: Collection[str]
    n: int
    exactly: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        """Raise ConfigError if no set can fit."""
        if isinstance(self.labels, str):
            raise ConfigError(f"The labels of a group must be a list. Write [{self.labels!r}].")
        object.__setattr__(self, "labels", tuple(dict.fromkeys(self.labels)))
        if not isinstance(self.n, int) or isinstance(self.n, bool) or self.n < 0:
            raise ConfigError(f"{self} must have a number of 0 or more, got {self.n!r}.")
        if not self.labels or (self.exactly and self.n > len(self.labels)):
            raise ConfigError(f"{self} has {len(self.labels)} labels. Add labels, or remove it.")

    def __str__(self) -> str:
        how = f"exactly {self.n}" if self.exactly else f"at most {self.n}"
        return f"The group {self.name!r} ({how})" if self.name else f"A group ({how})"
