"""Lines of systems, with their names at the right end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from setrnn.report.figures.style import (
    INK,
    LINE_HEIGHT,
    SMALL_SIZE,
    TEXT_SIZE,
    WHOLE,
    Look,
    add_axes,
    clean_name,
    new_drawing,
    text_width,
    write,
)
from setrnn.report.wording import format_decimal

Values = npt.NDArray[np.float64]

LEFT, TOP, BOTTOM = 36, 24, 40  # margins, in points
_LEADER = 12  # points between the axes and the names


@dataclass(frozen=True)
class Line:
    """The line of a system."""

    x: Values
    y: Values


@dataclass(frozen=True)
class Groups:
    """The groups of a figure from left to right: their places and sizes."""

    x: Values
    n: Sequence[int]
    ticks: Sequence[tuple[float, str]]
    members: str  # the plural of a member: "labels"


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
            zorder=look.order,
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
    set_plain_ticks(axes.yaxis)
    axes.grid(axis="y")


def draw_over_groups(
    lines: Mapping[str, Values],
    groups: Groups,
    looks: Mapping[str, Look],
    x_label: str,
    y_label: str,
) -> Drawing:
    """Draw one line per system over groups, and below it bars with the sizes of the groups."""
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
        write(below, format_short_count(n), (float(x), n), (0, 1.5), ha="center")
    below.set_ylim(0, 1.5 * max(groups.n))
    below.set_yticks([])
    below.spines["left"].set_visible(False)
    below.set_xticks([x for x, _ in groups.ticks], [text for _, text in groups.ticks])
    below.set_xlabel(x_label)
    write(below, n_label, (1, 0), (4, 1), of=WHOLE)
    return drawing


def title_axes(axes: Axes, text: str) -> None:
    """Write the label of the y axis above the axis, where it is readable."""
    write(axes, text, (0, 1), (-LEFT + 4, 8), of=WHOLE, color=INK, fontsize=TEXT_SIZE)


def format_short_count(n: float) -> str:
    """Write a count in few characters: 12k."""
    return f"{n:.0f}" if n < 10_000 else f"{n / 1000:.0f}k"


def set_plain_ticks(axis: Axis, most: int = 7) -> None:
    """Set ticks in the form of the tables, .60 and .65, on an axis with known limits."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    low, high = sorted(axis.get_view_interval())
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
