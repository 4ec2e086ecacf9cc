"""How all figures look: one colour per system, one text size, one way to write SVG.

The user's matplotlib settings are neither used nor changed.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Any

import matplotlib as mpl
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Drawing

from setrnn.methods import METHODS
from setrnn.report.systems import CLASSICAL, Systems

WIDTH = 5.0  # inches, 360 points: on a phone 360 pixels wide, one point is one pixel
TEXT_SIZE, SMALL_SIZE = 10.5, 9.5  # points
LINE_HEIGHT = 1.25  # of the text size
PAPER, INK, FAINT, MUTED_INK, GRID = "#ffffff", "#222222", "#bdbdbd", "#6b6b6b", "#e6e6e6"

ADDED = "#000000"  # the colour of added systems
FOCUS = ("seq2seq-rnn", "set-rnn", "set-rnn-exact")
FEW = 5  # up to so many systems, all are drawn in colour
_LEAST_CONTRAST = 4.5  # of text, as WCAG AA requires

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

WHOLE = "axes fraction"  # coordinates between (0, 0) and (1, 1) of the axes
_NUMBERS = re.compile(r"-?\d+\.\d{2,}")
_IDS = re.compile(r' id="([^"]+)"')
_REFERENCES = re.compile(r"(url\(#|href=\"#)([^)\"]+)")


@dataclass(frozen=True)
class Picture:
    """A figure before it is written as SVG."""

    title: str
    caption: str  # how to read the figure
    alt: str  # what the figure shows, for people who do not see it
    drawing: Drawing


@dataclass(frozen=True)
class Figure:
    """A figure as SVG text."""

    name: str  # of its file: "entropy" becomes entropy.svg
    title: str
    caption: str
    alt: str
    svg: str


@dataclass(frozen=True)
class Look:
    """How the line and the name of a system are drawn."""

    colour: str
    text_colour: str
    is_focus: bool

    @property
    def order(self) -> int:
        """The z-order of the line: higher is drawn on top."""
        return 4 if self.is_focus else 3


@contextmanager
def house_style(name: str) -> Iterator[None]:
    """Use the settings of this file only, and restore the user's afterwards."""
    with mpl.style.context(["default", {**_SETTINGS, "svg.hashsalt": f"setrnn-{name}"}]):
        yield


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
    return mpl.colors.to_hex((red, green, blue))


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
