"""A label set by name, with its probability."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScoredSet:
    """A label set and its probability."""

    labels: tuple[str, ...]
    probability: float
