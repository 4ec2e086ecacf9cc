"""Chance that repeats: the same seed draws the same, on every platform and Python."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Draws from one seeded stream.

    Built on `random()` alone, the one method whose values Python promises to keep.
    """

    def __init__(self, seed: int) -> None:
        self._uniform = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """Say yes with the given probability."""
        return self._uniform() < probability

    def between(self, low: int, high: int) -> int:
        """Draw a whole number from low to high, both included."""
        return low + int(self._uniform() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """Draw one of the choices, all equally likely."""
        return choices[int(self._uniform() * len(choices))]

    def pick_weighted(self, choices: Iterable[tuple[float, T]], total: float = 1.0) -> T:
        """Draw one of the choices by their weights, which sum to `total`."""
        left = self._uniform() * total
        chosen: T | None = None
        for weight, choice in choices:
            chosen = choice
            left -= weight
            if left < 0:
                break
        assert chosen is not None, "there is always something to choose from"
        return chosen
