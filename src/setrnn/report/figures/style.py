"""How all figures look: one colour a system, one size of text, nothing of the user's settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib as mpl
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Drawing

from setrnn.methods import METHODS
from setrnn.report.series.systems import CLASSICAL, Systems

WIDTH = 5.0  # inches, 360 points: on a phone of 360 px a point is a pixel
TEXT_SIZE, SMALL_SIZE = 10.5, 9.5  # points
LINE_HEIGHT = 1.25  # of the text size
PAPER, INK, FAINT, MUTED_INK, GRID = "#ffffff", "#222222", "#bdbdbd", "#6b6b6b", "#e6e6e6"

# Okabe and Ito's colours, told apart by the colour-blind; shades of one for kindred systems.
COLOURS = {name: method.colour for name, method in METHODS.items()}
ADDED = "#000000"
FOCUS = ("seq2seq-rnn", "set-rnn", "set-rnn-exact")
FEW = 5  # so many systems are all drawn in colour
_LEAST_CONTRAST = 4.5  # of text, as web pages want it

_SETTINGS = {
    "svg.fonttype": "none",  # text stays text
    "text.parse_math": False,  # a $ in a label is a $
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


@dataclass(frozen=True)
class Picture:
    """A figure before it is written."""

    title: str
    caption: str
    alt: str
    drawing: Drawing


@dataclass(frozen=True)
class Look:
    """How the line of a system is drawn, and its name."""

    colour: str
    text_colour: str
    is_focus: bool

    @property
    def width(self) -> float:
        """How thick its line is."""
        return 1.8 if self.is_focus else 0.9

    @property
    def order(self) -> int:
        """What is drawn over what."""
        return 4 if self.is_focus else 3


@contextmanager
def house_style(name: str) -> Iterator[None]:
    """Draw by our settings only, and leave the user's as they were."""
    with mpl.style.context(["default", {**_SETTINGS, "svg.hashsalt": f"setrnn-{name}"}]):
        yield


def new_drawing(height: float) -> Drawing:
    """Start an empty figure of one width."""
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


def looks(systems: Systems) -> dict[str, Look]:
    """Choose who is drawn in colour: all of few, else those the paper is about, and added rows."""
    names = [system.name for system in systems.all]
    focus = {name for name in names if name in FOCUS}
    classical = [system for system in systems.all if system.name in CLASSICAL]
    if classical:
        best = max(classical, key=lambda system: system.instance_f1(system.own_rule).mean())
        focus.add(best.name)
    focus |= {system.name for system in systems.all if system.is_added}
    if len(names) <= FEW:
        focus = set(names)
    return {name: _look(name, name in focus) for name in names}


def colour_of(name: str) -> str:
    """Return the one colour of a system."""
    return COLOURS.get(name, ADDED)


def _look(name: str, is_focus: bool) -> Look:
    colour = colour_of(name)
    if is_focus:
        return Look(colour, text_colour(colour), True)
    return Look(FAINT, MUTED_INK, False)


def text_colour(colour: str) -> str:
    """Darken a colour until it can be read on paper."""
    red, green, blue = to_rgb(colour)
    while contrast(red, green, blue) < _LEAST_CONTRAST:
        red, green, blue = 0.95 * red, 0.95 * green, 0.95 * blue
    return mpl.colors.to_hex((red, green, blue))


def text_on(colour: tuple[float, ...]) -> str:
    """Return the text colour that is read best on a colour."""
    return INK if contrast(*colour[:3]) < contrast(*to_rgb(INK)) ** 0.5 else PAPER


def contrast(*colour: float) -> float:
    """Return the contrast of a colour to white paper, 1 to 21."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
