"""How all figures look: one colour per system, names at the ends of lines, SVG for any page."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from setrnn.methods import METHODS
from setrnn.report.wording import format_decimal

Values = npt.NDArray[np.float64]

WIDTH = 5.0  # inches, 360 points: on a phone 360 pixels wide, one point is one pixel
TEXT_SIZE, SMALL_SIZE = 10.5, 9.5  # points
NAMES, MARGIN = 1.45, 0.5  # inches: of the names of systems, and of the numbers of an axis
PAPER, INK, FAINT, MUTED_INK, GRID = "#ffffff", "#222222", "#bdbdbd", "#6b6b6b", "#e6e6e6"
ADDED = "#7f7f7f"  # the colour of added systems
# On a page, these colours are those of the page, which may be dark.
PAGE_COLOURS = {PAPER: "--card", INK: "--ink", FAINT: "--bar", MUTED_INK: "--soft", GRID: "--line"}
STYLE = {
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


@dataclass(frozen=True)
class Picture:
    """A figure before it is written as SVG."""

    title: str
    caption: str  # how to read the figure
    drawing: Drawing
    alt: str = ""  # what the figure shows, for people who do not see it; else its title


@dataclass(frozen=True)
class Line:
    """The line of a system."""

    x: Values
    y: Values


def new_axes(
    height: float,
    heights: Sequence[float] = (1,),
    n_columns: int = 1,
    left: float = MARGIN,
    gap: float = 0.12,
    bottom: float = 0.58,
) -> tuple[Drawing, list[Axes]]:
    """Create a drawing of the common width, with room for names at the left or at the right.

    Args:
        height: of the drawing, in inches.
        heights: of the rows of axes, relative to each other; they share the x axis.
        n_columns: of the axes.
        left: inches; from NAMES on, the names are at the left, otherwise at the right.
        gap: between columns, relative to their width.
        bottom: inches below the axes, for their numbers and label.
    """
    drawing = Drawing(figsize=(WIDTH, height))
    FigureCanvasAgg(drawing)
    right = 0.12 if left >= NAMES else NAMES
    place = {"left": left / WIDTH, "right": 1 - right / WIDTH}
    place |= {"bottom": bottom / height, "top": 1 - 0.34 / height, "wspace": gap, "hspace": 0.08}
    grid = {"height_ratios": heights, **place}
    axes = drawing.subplots(len(heights), n_columns, squeeze=False, sharex="col", gridspec_kw=grid)
    return drawing, list(axes.ravel())


def colour_of(name: str) -> str:
    """Return the colour of a system."""
    return METHODS[name].colour if name in METHODS else ADDED


def clean_name(text: str, most: int = 20) -> str:
    """Remove control characters from a name, and shorten it."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def write(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    shift: tuple[float, float] = (0, 0),
    **style: Any,  # noqa: ANN401 (any of matplotlib's text properties)
) -> None:
    """Write a text at a place in the axes, by default in data coordinates, shifted by points."""
    style = {"color": MUTED_INK, "fontsize": SMALL_SIZE, "annotation_clip": False, **style}
    axes.annotate(text, at, shift, textcoords="offset points", **style)


def draw_lines(
    axes: Axes, lines: Mapping[str, Line], focus: Sequence[str], y_label: str, marker: str = ""
) -> None:
    """Draw one line per system, those out of focus in grey; the y axis fits all of them."""
    for name, line in lines.items():
        is_focus = name in focus
        axes.plot(
            line.x,
            line.y,
            color=colour_of(name) if is_focus else FAINT,
            linewidth=1.8 if is_focus else 0.9,
            zorder=4 if is_focus else 3,
            marker="o" if len(line.x) == 1 else marker,
            markersize=3.5 if is_focus else 2,
            markeredgewidth=0,
        )
    everything = np.concatenate([line.y for line in lines.values()])
    low, high = float(everything.min()), float(everything.max())
    room = max(0.06 * (high - low), 0.02)
    axes.set_ylim(max(low - room, -0.02), min(high + room, 1.02))
    set_plain_ticks(axes.yaxis)
    axes.grid(axis="y")
    axes.set_title(y_label, x=-0.08, pad=8)


def name_lines(axes: Axes, lines: Mapping[str, Line], focus: Sequence[str]) -> None:
    """Write each name right of its line without overlap, connected by a thin line."""
    box, per_point = axes.get_window_extent(), axes.figure.dpi / 72
    step = 6 * per_point / box.width  # in fractions of the axes
    low, high = axes.get_ylim()
    gap = 1.25 * SMALL_SIZE * per_point / box.height * (high - low)
    ends = [float(line.y[-1]) for line in lines.values()]
    beside = axes.get_yaxis_transform()  # x in fractions, y in data coordinates
    to_axes = axes.transData - axes.transAxes
    for name, end, place in zip(lines, ends, spread(ends, gap, low, high), strict=True):
        is_focus = name in focus
        start = to_axes.transform((lines[name].x[-1], end))[0]
        axes.plot(
            [start, 1 + step, 1 + 2 * step],
            [end, end, place],
            transform=beside,
            color=colour_of(name) if is_focus else FAINT,
            linewidth=1 if is_focus else 0.5,
            zorder=2,
            clip_on=False,
        )
        at, colour = (1 + 2.5 * step, float(place)), INK if is_focus else MUTED_INK
        write(axes, clean_name(name), at, xycoords=beside, va="center", color=colour)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> Values:
    """Move heights apart by a gap: upwards, then down again what is above the limit."""
    placed = np.array(wanted, dtype=np.float64)
    order = np.argsort(placed, kind="stable")
    floor, ceiling = low, max(high, low + gap * (len(placed) - 1))
    for place in order:
        floor = placed[place] = max(placed[place], floor)
        floor += gap
    for place in order[::-1]:
        ceiling = placed[place] = min(placed[place], ceiling)
        ceiling -= gap
    return placed


def set_plain_ticks(axis: Axis, most: int = 7) -> None:
    """Set ticks in the form of the tables, .60 and .65, on an axis with known limits."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    low, high = (min(max(each, 0), 1) for each in sorted(axis.get_view_interval()))
    values = [round(float(value), 6) for value in axis.get_majorticklocs()]
    values = [value for value in values if low <= value <= high]
    digits = max((len(f"{value:g}".partition(".")[2]) for value in values), default=0)
    texts = [
        f"{value:.0f}" if value in (0, 1) else format_decimal(value, digits) for value in values
    ]
    axis.set_ticks(values, labels=texts)


def to_svg(drawing: Drawing, name: str, alt: str) -> str:
    """Write a drawing as SVG that can stand in a page with others.

    Its ids are unique, and the same numbers give the same bytes.
    """
    stream = StringIO()
    with warnings.catch_warnings(), mpl.rc_context({"svg.hashsalt": f"setrnn-{name}"}):
        # The fonts of the viewer have the characters that ours lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawing.savefig(stream, format="svg", metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    # A style element would apply to the whole page.
    without = r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*|<defs>\s*<style.*?</style>\s*</defs>\s*"
    svg = re.sub(without, "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    svg = re.sub(r"(?<= d=\")[^\"]*", _round_numbers, svg)
    svg = re.sub(r"( id=\"|url\(#|href=\"#)", rf"\1{name}-", svg)
    opening = (
        f'<svg role="img" aria-label="{escape(alt)}" font-family="sans-serif" '
        'stroke-linejoin="round" stroke-linecap="butt"'
    )
    return svg.replace("<svg", opening, 1)


def _round_numbers(path: re.Match[str]) -> str:
    return re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found.group()):.2f}", path.group())


def in_page_colours(svg: str) -> str:
    """Replace black, white and greys by the colours of the page that holds the figure."""
    for colour, name in PAGE_COLOURS.items():
        svg = re.sub(rf"(?<=: ){colour}", f"var({name}, {colour})", svg)
    return svg
