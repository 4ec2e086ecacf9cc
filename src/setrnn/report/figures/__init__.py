"""The figures of a report, drawn from records in one style, as SVG.

The user's matplotlib settings are neither used nor changed.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO

import matplotlib as mpl
import matplotlib.style
from matplotlib.figure import Figure as Drawing

from setrnn.comparison.records import Comparison, Record
from setrnn.report.figures.curves import draw_accepted, draw_learning
from setrnn.report.figures.groups import draw_rare_labels, draw_set_size
from setrnn.report.figures.orders import draw_entropy, draw_orders
from setrnn.report.figures.quality import draw_overview, draw_prediction_speed, draw_training_time
from setrnn.report.figures.reliability import draw_reliability_diagrams
from setrnn.report.figures.set_sums import draw_set_sums
from setrnn.report.figures.style import GRID, INK, MUTED_INK, PAPER, SMALL_SIZE, TEXT_SIZE, Picture
from setrnn.report.systems import Systems, group_by_system

__all__ = ["FIGURES", "Figure", "draw_figures"]

FIGURES: dict[str, Callable[[Systems], Picture | None]] = {
    "systems": draw_overview,
    "rare-labels": draw_rare_labels,
    "entropy": draw_entropy,
    "set-size": draw_set_size,
    "set-sums": draw_set_sums,
    "reliability": draw_reliability_diagrams,
    "accepted": draw_accepted,
    "training-time": draw_training_time,
    "prediction-speed": draw_prediction_speed,
    "orders": draw_orders,
    "learning": draw_learning,
}
_SETTINGS = {
    "svg.fonttype": "none",  # keep text as text
    "text.parse_math": False,  # show a $ in a label as it is
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": TEXT_SIZE,
    "axes.labelsize": TEXT_SIZE,
    "axes.titlesize": TEXT_SIZE,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED_INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.xmargin": 0.03,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED_INK,
    "ytick.color": MUTED_INK,
    "xtick.labelsize": SMALL_SIZE,
    "ytick.labelsize": SMALL_SIZE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
}
_NUMBERS = re.compile(r"-?\d+\.\d{2,}")
_IDS = re.compile(r' id="([^"]+)"')
_REFERENCES = re.compile(r"(url\(#|href=\"#)([^)\"]+)")


@dataclass(frozen=True)
class Figure:
    """A figure as SVG text."""

    name: str  # of its file: "entropy" becomes entropy.svg
    title: str
    caption: str
    alt: str
    svg: str


def draw_figures(comparison: Comparison, records: Sequence[Record]) -> list[Figure]:
    """Draw all figures; those without data are left out."""
    systems = group_by_system(comparison, records)
    if not systems.all:
        return []
    figures = []
    for name, draw in FIGURES.items():
        settings = {**_SETTINGS, "svg.hashsalt": f"setrnn-{name}"}
        with mpl.style.context(["default", settings]):
            picture = draw(systems)
            if picture is not None:
                svg = to_svg(picture.drawing, name, picture.alt)
                figures.append(Figure(name, picture.title, picture.caption, picture.alt, svg))
    return figures


def to_svg(drawing: Drawing, name: str, alt: str) -> str:
    """Write a drawing as SVG that can stand in a page with others.

    It is small, its ids are unique, and the same numbers give the same bytes.
    """
    stream = StringIO()
    with warnings.catch_warnings():
        # The fonts of the viewer have the characters that ours lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawing.savefig(stream, format="svg", metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    # A style element would apply to the whole page.
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    svg = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", svg)
    svg = re.sub(
        r"(?<= d=\")[^\"]*|(?<=transform=\")[^\"]*|(?<= [xy]=\")[^\"]*", _round_numbers, svg
    )
    svg = _make_ids_unique(re.sub(r">\s+<", ">\n<", svg), name)
    opening = (
        f'<svg role="img" aria-label="{escape(alt)}" font-family="sans-serif" '
        'stroke-linejoin="round" stroke-linecap="butt"'
    )
    return svg.replace("<svg", opening, 1)


def _round_numbers(found: re.Match[str]) -> str:
    text = _NUMBERS.sub(
        lambda number: f"{float(number.group()):.2f}".rstrip("0").rstrip("."), found.group()
    )
    return re.sub(r"\s*\n\s*", " ", text).strip()


def _make_ids_unique(svg: str, name: str) -> str:
    """Drop ids without references, and prefix the others with the name of the figure."""
    used = {found[1] for found in _REFERENCES.findall(svg)}

    def rename(found: re.Match[str]) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    return _REFERENCES.sub(rf"\1{name}-\2", _IDS.sub(rename, svg))
