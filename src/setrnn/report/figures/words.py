"""Text of figures: how names and numbers are written, and where."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from matplotlib.axes import Axes

from setrnn.report.figures.style import MUTED_INK, SMALL_SIZE, TEXT_SIZE

WHOLE = "axes fraction"  # places between (0, 0) and (1, 1), of the axes


def write(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    shift: tuple[float, float] = (0, 0),
    of: str | tuple[str, str] = "data",
    *,
    color: str = MUTED_INK,
    fontsize: float = SMALL_SIZE,
    fontweight: str = "normal",
    ha: str = "left",
    va: str = "baseline",
    rotation: float = 0,
) -> None:
    """Write a text at a place of the axes or beyond, shifted by points."""
    axes.annotate(
        text,
        at,
        shift,
        xycoords=of,
        textcoords="offset points",
        annotation_clip=False,
        color=color,
        fontsize=fontsize,
        fontweight=fontweight,
        ha=ha,
        va=va,
        rotation=rotation,
    )


def text_width(text: str, size: float = TEXT_SIZE) -> float:
    """Estimate the width of a text in points, on the safe side: viewers choose the font."""
    return size * sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF" or letter in "mwMW@%…":
        return 1.0
    if letter in "fijlrtI.,:;'|-() ":
        return 0.4
    return 0.61 if letter.islower() or letter.isdigit() else 0.72


def clean(text: str, most: int = 24) -> str:
    """Make a name fit for a figure: no control letters, not too long."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def share(value: float, digits: int = 3) -> str:
    """Write a number between 0 and 1 as tables do: .741."""
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def listed(names: Sequence[str]) -> str:
    """Write names as a sentence does: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def key(*entries: str) -> str:
    """Write what signs mean in one line, with room between that viewers keep."""
    return "\u00a0\u00a0 ".join(entry.replace(" ", "\u00a0") for entry in entries)


def counted(n: int, what: str) -> str:
    """Write a number of things: 1 label, 2 labels."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
