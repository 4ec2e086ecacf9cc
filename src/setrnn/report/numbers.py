"""How numbers are written in tables: as the paper does."""

from __future__ import annotations


def score(value: float, measure: str = "") -> str:
    """Write a score: .741; hamming losses are small and get a digit more: .0241."""
    text = f"{value:.{n_digits(measure)}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def change(value: float, measure: str = "") -> str:
    """Write a difference with its sign: +.012, −.003; what rounds to nothing is ±.000."""  # noqa: RUF002
    size = score(abs(value), measure)
    if not size.strip(".0"):
        return f"±{size}"
    return f"{'+' if value > 0 else '−'}{size}"  # noqa: RUF001 (a minus, not a hyphen)


def p_value(p: float) -> str:
    """Write a p-value: p = .012, p < .001."""
    return "p < .001" if p < 0.001 else f"p = {score(p)}"


def n_digits(measure: str) -> int:
    """Tell how many digits a measure is written with."""
    return 4 if measure == "hamming_loss" else 3
