"""How all figures look: one colour per system, one text size, names at the ends of lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from setrnn.methods import METHODS
from setrnn.report.systems import CLASSICAL, Systems
from setrnn.report.wording import format_decimal

Values = npt.NDArray[np.float64]

WIDTH = 5.0  # inches, 360 points: on a phone 360 pixels wide, one point is one pixel
TEXT_SIZE, SMALL_SIZE = 10.5, 9.5  # points
LINE_HEIGHT = 1.25  # of the text size
PAPER, INK, FAINT, MUTED_INK, GRID = "#ffffff", "#222222", "#bdbdbd", "#6b6b6b", "#e6e6e6"

ADDED = "#000000"  # the colour of added systems
FOCUS = ("seq2seq-rnn", "set-rnn", "set-rnn-exact")
FEW = 5  # up to so many systems, all are drawn in colour
_LEAST_CONTRAST = 4.5  # of text, as WCAG AA requires

WHOLE = "axes fraction"  # coordinates between (0, 0) and (1, 1) of the axes
LEFT, TOP, BOTTOM = 36, 24, 40  # margins, in points
_LEADER = 12  # points between the axes and the names


@dataclass(frozen=True)
class Picture:
    """A figure before it is written as SVG."""

    title: str
    caption: str  # how to read the figure
    alt: str  # what the figure shows, for people who do not see it
    drawing: Drawing


@dataclass(frozen=True)
class Line:
    """The line of a system."""

    x: Values
    y: Values


@dataclass(frozen=True)
class Look:
    """How the line and the name of a system are drawn."""

    colour: str
    text_colour: str
    is_focus: bool  # in colour, and drawn above the others


def new_drawing(height: float) -> Drawing:
    """Create an empty figure of the common width."""
    drawing = Drawing(figsize=(WIDTH, height))
    FigureCanvasAgg(drawing)
    return drawing


def add_axes(
    drawing: Drawing,
    left: float,
    bottom: float,
    right: float,
    top: float,
    below: Axes | None = None,
) -> Axes:
    """Add axes with these margins, in points."""
    width, height = (72 * float(inches) for inches in drawing.get_size_inches())
    box = (
        left / width,
        bottom / height,
        (width - left - right) / width,
        (height - bottom - top) / height,
    )
    return drawing.add_axes(box, sharex=below)


def choose_looks(systems: Systems) -> dict[str, Look]:
    """Choose the systems drawn in colour: all of few, else the main and the added ones."""
    names = [system.name for system in systems.all]
    focus = {name for name in names if name in FOCUS}
    classical = [system for system in systems.all if system.name in CLASSICAL]
    if classical:
        best = max(classical, key=lambda system: system.instance_f1(system.own_rule).mean())
        focus.add(best.name)
    focus |= {system.name for system in systems.all if system.is_added}
    if len(names) <= FEW:
        focus = set(names)
    return {name: make_look(name, name in focus) for name in names}


def colour_of(name: str) -> str:
    """Return the colour of a system."""
    return METHODS[name].colour if name in METHODS else ADDED


def make_look(name: str, is_focus: bool = True) -> Look:
    """Return how a system is drawn: in its colour, or in grey where it is not in focus."""
    colour = colour_of(name)
    return Look(colour, text_colour(colour), True) if is_focus else Look(FAINT, MUTED_INK, False)


def text_colour(colour: str) -> str:
    """Darken a colour until text in it is readable on white."""
    red, green, blue = to_rgb(colour)
    while contrast(red, green, blue) < _LEAST_CONTRAST:
        red, green, blue = 0.95 * red, 0.95 * green, 0.95 * blue
    return to_hex((red, green, blue))


def text_on(colour: tuple[float, ...]) -> str:
    """Return the text colour that is most readable on a colour."""
    return INK if contrast(*colour[:3]) < contrast(*to_rgb(INK)) ** 0.5 else PAPER


def contrast(*colour: float) -> float:
    """Return the contrast of a colour with white, 1 to 21."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def write(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    shift: tuple[float, float] = (0, 0),
    of: str | tuple[str, str] = "data",
    **style: Any,  # noqa: ANN401 (any of matplotlib's text properties)
) -> None:
    """Write a text at a place in or beside the axes, shifted by points."""
    style = {"color": MUTED_INK, "fontsize": SMALL_SIZE, "annotation_clip": False, **style}
    axes.annotate(text, at, shift, xycoords=of, textcoords="offset points", **style)


def text_width(text: str, size: float = TEXT_SIZE) -> float:
    """Estimate the width of a text in points, rather too wide: the viewer chooses the font."""
    return size * sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF" or letter in "mwMW@%…":
        return 1.0
    if letter in "fijlrtI.,:;'|-() ":
        return 0.4
    return 0.61 if letter.islower() or letter.isdigit() else 0.72


def clean_name(text: str, most: int = 24) -> str:
    """Remove control characters from a name, and shorten it."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def join_key(*entries: str) -> str:
    """Write the key of a figure in one line, with spaces that viewers keep."""
    return "\u00a0\u00a0 ".join(entry.replace(" ", "\u00a0") for entry in entries)


def names_width(names: Sequence[str]) -> float:
    """Return the width that names at the right end need, in points."""
    return _LEADER + 6 + max(text_width(clean_name(name), SMALL_SIZE) for name in names)


def draw_lines(
    axes: Axes, lines: Mapping[str, Line], looks: Mapping[str, Look], marker: str = ""
) -> None:
    """Draw the lines; set the limits of the axes before `name_lines`."""
    for name, line in lines.items():
        look = looks[name]
        axes.plot(
            line.x,
            line.y,
            color=look.colour,
            linewidth=1.8 if look.is_focus else 0.9,
            zorder=4 if look.is_focus else 3,
            marker="o" if len(line.x) == 1 else marker,
            markersize=3.5 if look.is_focus else 2,
            markeredgewidth=0,
        )


def name_lines(axes: Axes, lines: Mapping[str, Line], looks: Mapping[str, Look]) -> None:
    """Write each name right of its line without overlap, connected by a thin line."""
    box = axes.get_window_extent()
    scale = 72 / axes.figure.dpi
    ends = [(float(line.x[-1]), float(line.y[-1])) for line in lines.values()]
    points = axes.transData.transform(ends) * scale
    right = box.x1 * scale
    gap = SMALL_SIZE * LINE_HEIGHT
    n_over = max(gap * len(ends) - box.height * scale, 0)
    low, high = box.y0 * scale - n_over + 2, box.y1 * scale + 4
    heights = spread([point[1] for point in points], gap, low, high)
    to_data = axes.transData.inverted()
    for (name, point), height in zip(zip(lines, points, strict=True), heights, strict=True):
        look = looks[name]
        path = [(point[0] + 3, point[1]), (right + 3, point[1]), (right + _LEADER - 2, height)]
        x, y = to_data.transform(np.array(path) / scale).T
        axes.plot(x, y, color=look.colour, linewidth=0.5, zorder=2, clip_on=False)
        place, text = (right + _LEADER, height), clean_name(name)
        write(axes, text, place, of="figure points", va="center", color=look.text_colour)


def fit_heights(axes: Axes, values: Sequence[Values]) -> None:
    """Choose limits that contain all values, and ticks in the form of the tables."""
    low, high = (float(limit(np.concatenate(values))) for limit in (np.min, np.max))
    room = max(0.06 * (high - low), 0.02)
    axes.set_ylim(max(low - room, -0.02), min(high + room, 1.02))
    set_plain_ticks(axes.yaxis, within=(0, 1))
    axes.grid(axis="y")


def title_axes(axes: Axes, text: str) -> None:
    """Write the label of the y axis above the axis, where it is readable."""
    write(axes, text, (0, 1), (-LEFT + 4, 8), of=WHOLE, color=INK, fontsize=TEXT_SIZE)


def set_plain_ticks(
    axis: Axis, most: int = 7, within: tuple[float, float] = (-np.inf, np.inf)
) -> None:
    """Set ticks in the form of the tables, .60 and .65, on an axis with known limits."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    low, high = sorted(axis.get_view_interval())
    low, high = max(low, within[0]), min(high, within[1])
    values = [round(float(value), 6) for value in axis.get_majorticklocs()]
    values = [value for value in values if low <= value <= high]
    digits = max((len(f"{value:g}".partition(".")[2]) for value in values), default=0)
    texts = [
        f"{value:.0f}" if value in (0, 1) else format_decimal(value, digits) for value in values
    ]
    axis.set_ticks(values, labels=texts)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> Values:
    """Move heights as little as possible, so that they are a gap apart and within limits."""
    heights = np.asarray(wanted, dtype=np.float64)
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    # Without the steps, "apart" means ascending: pool neighbours that descend.
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
