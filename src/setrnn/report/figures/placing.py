"""Where labels stand so that none covers another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

_DISTANCES = (5.0, 9.0, 15.0, 22.0, 30.0, 40.0, 52.0, 66.0, 82.0, 100.0, 125.0, 150.0)
_N_ANGLES = 16


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        """Tell whether both share any area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

    def holds(self, other: Box) -> bool:
        """Tell whether the other lies within."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.bottom <= other.bottom
            and other.top <= self.top
        )


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> Values:
    """Move heights as little as can be, so that all are a gap apart and within the limits."""
    heights = np.asarray(wanted, dtype=np.float64)
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    # With the steps taken off, apart means rising: pool neighbours that fall.
    pools: list[tuple[float, int]] = []
    for value in heights[order] - steps:
        total, n = float(value), 1
        while pools and pools[-1][0] / pools[-1][1] > total / n:
            before = pools.pop()
            total, n = total + before[0], n + before[1]
        pools.append((total, n))
    level = np.repeat([total / n for total, n in pools], [n for _, n in pools])
    room = max(high - low - (steps[-1] if len(steps) else 0), 0)
    placed = np.empty_like(heights)
    placed[order] = np.clip(level, low, low + room) + steps
    return placed


def place_labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    inside: Box,
    obstacles: Sequence[Box],
) -> list[Box | None]:
    """Find each point's label the nearest free place; None where there is no room at all."""
    taken = list(obstacles)
    placed: list[Box | None] = []
    for point, size in zip(points, sizes, strict=True):
        free = (
            box
            for box in _around(point, size)
            if inside.holds(box) and not any(box.overlaps(other) for other in taken)
        )
        box = next(free, None)
        placed.append(box)
        if box is not None:
            taken.append(box)
    return placed


def _around(point: tuple[float, float], size: tuple[float, float]) -> Iterator[Box]:
    x, y = point
    width, height = size
    # To the right first, as one reads.
    angles = [sign * 2 * pi * step / _N_ANGLES for step in range(9) for sign in (1, -1)]
    for distance in _DISTANCES:
        for angle in angles:
            middle_x = x + (distance + width / 2) * cos(angle)
            middle_y = y + (distance + height / 2) * sin(angle)
            yield Box(
                middle_x - width / 2,
                middle_y - height / 2,
                middle_x + width / 2,
                middle_y + height / 2,
            )
