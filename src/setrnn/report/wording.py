"""How numbers, differences and lists are written: in tables, figures and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

MAX_ESTIMATED = 1_000_000  # documents; larger estimates are not written out


def format_decimal(value: float, n_digits: int = 3) -> str:
    """Write a number as the paper does, without the leading zero: .741."""
    text = f"{value:.{n_digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def format_score(value: float, measure: str = "") -> str:
    """Write a score: .741; a hamming loss is small and gets one more digit: .0241."""
    return format_decimal(value, 4 if measure == "hamming_loss" else 3)


def format_change(value: float, measure: str = "") -> str:
    """Write a difference with its sign: +.012, −.003; what rounds to zero is ±.000."""  # noqa: RUF002
    size = format_score(abs(value), measure)
    if not size.strip(".0"):
        return f"±{size}"
    return f"{'+' if value > 0 else '−'}{size}"  # noqa: RUF001 (a minus, not a hyphen)


def format_probability(probability: float) -> str:
    """Write a probability with four decimals, or in scientific notation below .001."""
    return f"{probability:.4f}" if probability >= 0.001 else f"{probability:.1e}"


def format_p(p: float) -> str:
    """Write a p-value: p = .012, or p < .001."""
    return "p < .001" if p < 0.001 else f"p = {format_score(p)}"


def format_p_value(p: float) -> str:
    """Write a p-value in a column of them: .012, or < .001."""
    return format_p(p).removeprefix("p ").removeprefix("= ")


def format_documents(n: float) -> str:
    """Write an estimated number of documents with two digits: 5,300, or over 1,000,000."""
    if n > MAX_ESTIMATED:
        return f"over {MAX_ESTIMATED:,}"
    step = 10 ** max(0, len(str(int(n))) - 2)
    return f"{ceil(n / step) * step:,}"


def join_names(names: Sequence[str]) -> str:
    """Join names as in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def format_duration(seconds: float) -> str:
    """Write a time in its largest unit: 7.2 s, 45 s, 12 min, 2.5 h."""
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
