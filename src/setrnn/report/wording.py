"""How numbers and lists are written in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from setrnn.compare.statistics import Difference, Summary


def score(value: float, n_digits: int = 3) -> str:
    """Write a measure as the paper does: .741."""
    return _without_zero(f"{value:.{n_digits}f}")


def change(value: float, n_digits: int = 3) -> str:
    """Write a difference with its sign: +.012, -.003, 0."""
    text = _without_zero(f"{abs(value):.{n_digits}f}")
    if not text.strip(".0"):
        return "±0"
    return f"{'+' if value > 0 else '−'}{text}"  # noqa: RUF001 (a minus, not a hyphen)


def digits(measure: str) -> int:
    """Tell how many digits a measure has; hamming losses are small."""
    return 4 if measure == "hamming_loss" else 3


def p_value(p: float) -> str:
    """Write a p-value: p = .012, p < .001."""
    if p < 0.001:
        return "p < .001"
    return "p = 1" if p > 0.9995 else f"p = {score(p)}"


def interval(summary: Summary, n_digits: int = 3) -> str:
    """Write a mean with its 95% interval."""
    low, high = score(summary.low, n_digits), score(summary.high, n_digits)
    return f"{score(summary.mean, n_digits)} ({low} to {high})"


def difference(found: Difference, n_digits: int = 3) -> str:
    """Write a difference with its 95% interval."""
    low, high = change(found.low, n_digits), change(found.high, n_digits)
    return f"{change(found.mean, n_digits)} ({low} to {high})"


def listed(names: Sequence[str]) -> str:
    """Join names as in a sentence: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def counted(n: int, what: str) -> str:
    """Write a number of things: 1 run, 2 runs."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _without_zero(text: str) -> str:
    return text[1:] if text.startswith("0.") else text.replace("-0.", "-.", 1)
