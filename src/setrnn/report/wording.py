"""How numbers and lists are written in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from setrnn.comparison.statistics import Difference, Summary
from setrnn.report.numbers import change, score


def interval(summary: Summary, measure: str = "") -> str:
    """Write a mean with its 95% interval."""
    low, high = score(summary.low, measure), score(summary.high, measure)
    return f"{score(summary.mean, measure)} ({low} to {high})"


def difference(found: Difference, measure: str = "") -> str:
    """Write a difference with its 95% interval."""
    low, high = change(found.low, measure), change(found.high, measure)
    return f"{change(found.mean, measure)} ({low} to {high})"


def listed(names: Sequence[str]) -> str:
    """Join names as in a sentence: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def counted(n: int, what: str) -> str:
    """Write a number of things: 1 run, 2 runs."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"
