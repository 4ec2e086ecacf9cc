"""Lines of systems with their names at the right end, in place of a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from setrnn.report.figures.placing import spread
from setrnn.report.figures.style import (
    INK,
    LINE_HEIGHT,
    SMALL_SIZE,
    TEXT_SIZE,
    Look,
    add_axes,
    new_drawing,
)
from setrnn.report.figures.words import WHOLE, clean, share, text_width, write

Values = npt.NDArray[np.float64]

LEFT, TOP, BOTTOM = 36, 24, 40  # margins, in points
_LEADER = 12  # from the axes to the names


@dataclass(frozen=True)
class Line:
    """A system's line."""

    x: Values
    y: Values


@dataclass(frozen=True)
class Groups:
    """The groups of a figure, left to right: where they stand, and how many each holds."""

    x: Values
    n: Sequence[int]
    ticks: Sequence[tuple[float, str]]
    members: str  # "labels"


def names_width(names: Sequence[str]) -> float:
    """Return the room that names at the right end need, in points."""
    return _LEADER + 6 + max(text_width(clean(name), SMALL_SIZE) for name in names)


def draw_lines(
    axes: Axes, lines: Mapping[str, Line], looks: Mapping[str, Look], marker: str = ""
) -> None:
    """Draw the lines; limits must be set before `name_lines`."""
    for name, line in lines.items():
        look = looks[name]
        axes.plot(
            line.x,
            line.y,
            color=look.colour,
            linewidth=look.width,
            zorder=look.order,
            marker="o" if len(line.x) == 1 else marker,
            markersize=3.5 if look.is_focus else 2,
            markeredgewidth=0,
        )


def name_lines(axes: Axes, lines: Mapping[str, Line], looks: Mapping[str, Look]) -> None:
    """Write each name right of its line's end, all apart, tied to it by a thin line."""
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
        write(
            axes,
            clean(name),
            (right + _LEADER, height),
            of="figure points",
            va="center",
            color=look.text_colour,
        )


def fit_heights(axes: Axes, values: Sequence[Values]) -> None:
    """Choose limits that hold all values, and ticks as tables write them."""
    low, high = (float(limit(np.concatenate(values))) for limit in (np.min, np.max))
    room = max(0.06 * (high - low), 0.02)
    axes.set_ylim(max(low - room, -0.02), min(high + room, 1.02))
    plain_ticks(axes.yaxis)
    axes.grid(axis="y")


def draw_over_groups(
    lines: Mapping[str, Values],
    groups: Groups,
    looks: Mapping[str, Look],
    x_label: str,
    y_label: str,
) -> Drawing:
    """Draw a line a system over groups, and bars of how many each group holds below."""
    n_label = f"number of {groups.members}"
    right = max(names_width(list(lines)), text_width(f" {n_label} ", SMALL_SIZE))
    drawing = new_drawing(4.3)
    above = add_axes(drawing, LEFT, 100, right, TOP)
    below = add_axes(drawing, LEFT, BOTTOM, right, 4.3 * 72 - 86, below=above)
    full = {name: Line(groups.x, values) for name, values in lines.items()}
    above.set_xlim(float(groups.x.min()) - 0.6, float(groups.x.max()) + 0.6)
    fit_heights(above, list(lines.values()))
    draw_lines(above, full, looks, marker="o")
    name_lines(above, full, looks)
    title_axes(above, y_label)
    above.tick_params(labelbottom=False)
    below.bar(groups.x, groups.n, width=0.8, color="#d0d0d0", linewidth=0)
    for x, n in zip(groups.x, groups.n, strict=True):
        write(below, short_count(n), (float(x), n), (0, 1.5), ha="center")
    below.set_ylim(0, 1.5 * max(groups.n))
    below.set_yticks([])
    below.spines["left"].set_visible(False)
    below.set_xticks([x for x, _ in groups.ticks], [text for _, text in groups.ticks])
    below.set_xlabel(x_label)
    write(below, n_label, (1, 0), (4, 1), of=WHOLE)
    return drawing


def title_axes(axes: Axes, text: str) -> None:
    """Write the label of the y axis above it, where it can be read."""
    write(axes, text, (0, 1), (-LEFT + 4, 8), of=WHOLE, color=INK, fontsize=TEXT_SIZE)


def short_count(n: float) -> str:
    """Write a count in few letters: 12k."""
    return f"{n:.0f}" if n < 10_000 else f"{n / 1000:.0f}k"


def plain_ticks(axis: Axis, most: int = 7) -> None:
    """Write the ticks of an axis whose limits are set as tables write numbers: .60, .65."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    low, high = sorted(axis.get_view_interval())
    values = [round(float(value), 6) for value in axis.get_majorticklocs()]
    values = [value for value in values if low <= value <= high]
    digits = max((len(f"{value:g}".partition(".")[2]) for value in values), default=0)
    texts = [f"{value:.0f}" if value in (0, 1) else share(value, digits) for value in values]
    axis.set_ticks(values, labels=texts)
