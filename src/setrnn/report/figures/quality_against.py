"""Quality against a cost: who is not beaten in both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from setrnn.report.figures.lines import BOTTOM, LEFT, TOP, tick, title_axes
from setrnn.report.figures.placing import Box, place_labels
from setrnn.report.figures.style import (
    LINE_HEIGHT,
    MUTED_INK,
    PAPER,
    SMALL_SIZE,
    add_axes,
    clean,
    colour_of,
    new_drawing,
    text_colour,
    text_width,
)
from setrnn.report.series.frontier import frontier
from setrnn.report.series.systems import System, Systems

BEST_RULE = "f1"  # made for instance-F1


@dataclass(frozen=True)
class Point:
    """A system by one rule."""

    system: str
    rule: str
    cost: float  # seconds, or documents per second
    quality: float
    is_own: bool


def points_of(systems: Systems, cost: Callable[[System, str], float | None]) -> list[Point]:
    """Return each system by its own rule and by the one made for instance-F1."""
    points = []
    for system in systems.all:
        rules = dict.fromkeys((system.own_rule, BEST_RULE))
        for rule in rules:
            value = cost(system, rule) if system.has(rule) else None
            if value is not None and value > 0 and np.isfinite(value):
                quality = float(system.instance_f1(rule).mean())
                points.append(Point(system.name, rule, value, quality, rule == system.own_rule))
    return points


def unbeaten(points: Sequence[Point], less_is_better: bool) -> list[Point]:
    """Return the points on the frontier, the cheapest first."""
    costs = [point.cost if less_is_better else 1 / point.cost for point in points]
    return [points[place] for place in frontier(costs, [point.quality for point in points])]


def shared_machine(systems: Systems) -> str:
    """Say where runs shared the machine, as that makes them slower."""
    n = {run.costs.n_jobs for system in systems.all for run in system.runs if run.costs}
    if max(n, default=1) < 2:
        return ""
    at_once = f"{min(n)} to {max(n)}" if len(n) > 1 else str(max(n))
    return f" Runs shared the machine ({at_once} at once): alone each would be faster."


def draw_quality(
    points: Sequence[Point], best: Sequence[Point], x_label: str, ticks: Mapping[float, str]
) -> Drawing:
    """Draw both rules of each system joined by a line, and the frontier."""
    drawing = new_drawing(4.2)
    axes = add_axes(drawing, LEFT, BOTTOM, 10, TOP + 16)
    _limits(axes, points, ticks)
    axes.plot(
        [p.cost for p in best],
        [p.quality for p in best],
        color="#cfcfcf",
        linewidth=5,
        solid_capstyle="round",
        zorder=1,
    )
    names = list(dict.fromkeys(point.system for point in points))
    for name in names:
        pair = [point for point in points if point.system == name]
        colour = colour_of(name)
        axes.plot([p.cost for p in pair], [p.quality for p in pair], color=colour, linewidth=1)
        for point in pair:
            axes.plot(
                point.cost,
                point.quality,
                "o",
                color=colour,
                markersize=5.5,
                markerfacecolor=PAPER if point.is_own and point.rule != BEST_RULE else colour,
                zorder=4,
            )
    _name_points(axes, points, best, names)
    title_axes(axes, "instance-F1")
    axes.annotate(
        "○ own rule   ● rule f1   ▬ not beaten in both",
        (0, 1),
        (-LEFT + 4, 24),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=SMALL_SIZE,
        color=MUTED_INK,
        annotation_clip=False,
    )
    axes.set_xlabel(x_label)
    return drawing


def _limits(axes: Axes, points: Sequence[Point], ticks: Mapping[float, str]) -> None:
    costs = [point.cost for point in points]
    low, high = min(costs), max(costs)
    room = max((high / low) ** 0.12, 1.6)
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    inside = {value: text for value, text in ticks.items() if low / room <= value <= high * room}
    axes.set_xticks(list(inside), list(inside.values()))
    axes.set_xticks([], minor=True)
    qualities = [point.quality for point in points]
    room = max(0.12 * (max(qualities) - min(qualities)), 0.01)
    axes.set_ylim(max(min(qualities) - room, 0), min(max(qualities) + room, 1.02))
    axes.yaxis.set_major_formatter(lambda value, _: tick(value))
    axes.grid(axis="y")


def _name_points(
    axes: Axes, points: Sequence[Point], best: Sequence[Point], names: Sequence[str]
) -> None:
    """Name each system once, beside its better dot, where there is room."""
    scale = 72 / axes.figure.dpi
    box = axes.get_window_extent()
    inside = Box(box.x0 * scale, box.y0 * scale, box.x1 * scale + 8, box.y1 * scale)

    def on_paper(point: Point) -> tuple[float, float]:
        x, y = axes.transData.transform((point.cost, point.quality)) * scale
        return float(x), float(y)

    dots = [on_paper(point) for point in points]
    taken = [Box(x - 3.5, y - 3.5, x + 3.5, y + 3.5) for x, y in dots]
    for name in names:  # the lines between two dots
        ends = np.array([on_paper(point) for point in points if point.system == name])
        for x, y in np.linspace(ends[0], ends[-1], 12):
            taken.append(Box(x - 1, y - 3, x + 1, y + 3))
    tops = [max((p for p in points if p.system == name), key=lambda p: p.quality) for name in names]
    order = sorted(range(len(names)), key=lambda place: -tops[place].quality)
    sizes = [(text_width(clean(names[i]), SMALL_SIZE), SMALL_SIZE * LINE_HEIGHT) for i in order]
    ends_at = [on_paper(tops[place]) for place in order]
    unbeaten_names = {point.system for point in best}
    for place, point, found in zip(
        order, ends_at, place_labels(ends_at, sizes, inside, taken), strict=True
    ):
        if found is None:
            continue
        name = names[place]
        x = min(max(point[0], found.left), found.right)
        y = min(max(point[1], found.bottom), found.top)
        if (x - point[0]) ** 2 + (y - point[1]) ** 2 > 9**2:
            line = axes.transData.inverted().transform(np.array([point, (x, y)]) / scale)
            axes.plot(*line.T, color=colour_of(name), linewidth=0.5, zorder=2)
        axes.annotate(
            clean(name),
            (found.left, (found.bottom + found.top) / 2),
            xycoords="figure points",
            va="center",
            fontsize=SMALL_SIZE,
            color=text_colour(colour_of(name)),
            fontweight="bold" if name in unbeaten_names else "normal",
            annotation_clip=False,
        )
