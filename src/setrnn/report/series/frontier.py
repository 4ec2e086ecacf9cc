"""Who is not beaten in both cost and quality."""

from __future__ import annotations

from collections.abc import Sequence


def frontier(costs: Sequence[float], qualities: Sequence[float]) -> list[int]:
    """Return the points that none beats, by rising cost: no other is as cheap and better."""
    best = float("-inf")
    found = []
    # The best of equal cost first: the others are then beaten.
    for place in sorted(range(len(costs)), key=lambda place: (costs[place], -qualities[place])):
        if qualities[place] > best:
            best = qualities[place]
            found.append(place)
    return found
