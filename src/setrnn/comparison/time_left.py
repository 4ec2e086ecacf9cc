"""How long a comparison still takes, from what its runs took so far."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from setrnn.methods import METHODS

TELLING_SHARE = 0.1  # of a run: done, it tells how long the whole takes


@dataclass(frozen=True)
class Running:
    """A run that is under way."""

    method: str
    seconds: float  # so far
    share: float  # done


def expected_seconds(
    methods: Sequence[str], measured: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    """Return what a run of each method should take: as its runs did, or in proportion to others.

    Without any measured run the numbers only tell which takes longer.
    """
    known = {method: sum(each) / len(each) for method, each in measured.items() if each}
    costs = sum(_cost(method) for method in known)
    scale = sum(known.values()) / costs if costs else 1.0
    return {method: known.get(method, scale * _cost(method)) for method in methods}


def time_left(
    measured: Mapping[str, Sequence[float]],
    running: Sequence[Running],
    waiting: Sequence[str],
    n_jobs: int,
) -> float | None:
    """Estimate the seconds until the last run ends; None while there is nothing to go by.

    Args:
        measured: the seconds of finished runs, by method.
        running: the runs under way.
        waiting: the methods of those to come, in their order.
        n_jobs: how many run at once.
    """
    telling = [each for each in running if each.share >= TELLING_SHARE]
    by_share = {each.method: [each.seconds / each.share] for each in telling}
    known = {**by_share, **{method: each for method, each in measured.items() if each}}
    if not known:
        return None
    expected = expected_seconds([*waiting, *(each.method for each in running)], known)
    ends = [
        _seconds_to_go(each, expected[each.method], each.method in measured) for each in running
    ]
    ends += [0.0] * (n_jobs - len(ends))
    heapq.heapify(ends)
    for method in waiting:
        heapq.heappush(ends, heapq.heappop(ends) + expected[method])
    return max(ends)


def _seconds_to_go(run: Running, expected: float, is_measured: bool) -> float:
    if run.share >= TELLING_SHARE and (not is_measured or run.seconds > expected):
        return run.seconds / run.share - run.seconds
    return max(0.0, expected - run.seconds)


def _cost(method: str) -> float:
    return METHODS[method].relative_cost if method in METHODS else 1.0
