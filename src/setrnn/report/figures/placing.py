"""Where labels stand so that none covers another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, pi, sin

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

_DISTANCES = (5.0, 9.0, 15.0, 22.0, 30.0, 40.0, 52.0, 66.0, 82.0, 100.0, 125.0, 150.0)
_N_ANGLES = 16
_NEAR = 9.0  # a label farther off is tied to its point by a line


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def around(cls, x: float, y: float, half_width: float, half_height: float) -> Box:
        """Return the rectangle around a point."""
        return cls(x - half_width, y - half_height, x + half_width, y + half_height)

    @property
    def sides(self) -> tuple[float, float, float, float]:
        """Left, bottom, right, top."""
        return self.left, self.bottom, self.right, self.top

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


def along(path: Values, step: float = 3.0) -> Values:
    """Return points along a line through given points (P, 2), a step apart."""
    parts = [path[:1]]
    for start, end in pairwise(path):
        n = max(int(np.hypot(*(end - start)) / step), 1)
        parts.append(start + (end - start) * np.arange(1, n + 1)[:, None] / n)
    return np.concatenate(parts)


@dataclass(frozen=True)
class Place:
    """Where a label stands, and the line that ties it to its point; empty where it is near."""

    box: Box
    leader: Values  # (P, 2)


def place_labels(
    points: Sequence[Values],
    sizes: Sequence[tuple[float, float]],
    inside: Box,
    obstacles: Sequence[Box],
) -> list[Place | None]:
    """Find each label the free place nearest to any of its points (P, 2).

    None where there is no room at all.
    """
    taken, labels = _sides(obstacles), _sides(())
    placed: list[Place | None] = []
    for own_points, size in zip(points, sizes, strict=True):
        place = next(
            (
                place
                for place in _around(own_points, size)
                if inside.holds(place.box)
                and not _cover(_sides([place.box]), taken)
                and not _cover(_along_leader(place), labels)
            ),
            None,
        )
        placed.append(place)
        if place is not None:
            labels = np.vstack([labels, place.box.sides])
            taken = np.vstack([taken, place.box.sides, _along_leader(place)])
    return placed


def _sides(boxes: Sequence[Box]) -> Values:
    return np.array([each.sides for each in boxes], dtype=np.float64).reshape(-1, 4)


def _along_leader(place: Place) -> Values:
    return _sides([Box.around(x, y, 0.5, 0.5) for x, y in place.leader])


def _cover(some: Values, others: Values) -> bool:
    """Tell whether any of some boxes (A, 4) shares area with any of the others (B, 4)."""
    one, other = some[:, None], others[None]
    shared = (one[..., :2] < other[..., 2:]) & (other[..., :2] < one[..., 2:])  # (A, B, 2)
    return bool(shared.all(axis=-1).any())


def _around(points: Values, size: tuple[float, float]) -> Iterator[Place]:
    width, height = size
    # To the right first, as one reads.
    angles = [sign * 2 * pi * step / _N_ANGLES for step in range(9) for sign in (1, -1)]
    for distance in _DISTANCES:
        for point in points:
            for angle in angles:
                middle_x = float(point[0]) + (distance + width / 2) * cos(angle)
                middle_y = float(point[1]) + (distance + height / 2) * sin(angle)
                box = Box.around(middle_x, middle_y, width / 2, height / 2)
                end = np.clip(point, box.sides[:2], box.sides[2:])
                is_far = distance > _NEAR
                yield Place(box, along(np.array([point, end])) if is_far else np.empty((0, 2)))
