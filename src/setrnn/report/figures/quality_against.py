"""Quality against a cost: who is not beaten in both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from setrnn.report.figures.lines import BOTTOM, LEFT, TOP, plain_ticks, title_axes
from setrnn.report.figures.placing import Box, along, place_labels
from setrnn.report.figures.style import (
    LINE_HEIGHT,
    PAPER,
    SMALL_SIZE,
    add_axes,
    colour_of,
    new_drawing,
    text_colour,
)
from setrnn.report.figures.words import WHOLE, clean, key, text_width, write
from setrnn.report.series.frontier import frontier
from setrnn.report.series.systems import System, Systems

Values = npt.NDArray[np.float64]

BEST_RULE = "f1"  # made for instance-F1
_HEIGHT = SMALL_SIZE * LINE_HEIGHT
_MOST_TICKS = 7


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
    points: Sequence[Point],
    best: Sequence[Point],
    x_label: str,
    ticks: Sequence[Mapping[float, str]],
) -> Drawing:
    """Draw both rules of each system joined by a line, and the frontier."""
    drawing = new_drawing(4.2)
    axes = add_axes(drawing, LEFT, BOTTOM, 18, TOP + 18)
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
    _name_points(axes, points, best)
    title_axes(axes, "instance-F1")
    write(
        axes,
        key("○ own rule", "● rule f1", "▬ not beaten in both"),
        (0, 1),
        (-LEFT + 4, 26),
        of=WHOLE,
    )
    axes.set_xlabel(x_label)
    return drawing


def _limits(axes: Axes, points: Sequence[Point], ticks: Sequence[Mapping[float, str]]) -> None:
    costs = [point.cost for point in points]
    low, high = min(costs), max(costs)
    room = max((high / low) ** 0.12, 1.6)
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    inside: dict[float, str] = {}
    for level in ticks:  # the finest that has room
        found = {value: text for value, text in level.items() if low / room <= value <= high * room}
        inside = found if len(found) <= _MOST_TICKS else inside
    axes.set_xticks(list(inside), list(inside.values()))
    axes.set_xticks([], minor=True)
    qualities = [point.quality for point in points]
    room = max(0.12 * (max(qualities) - min(qualities)), 0.01)
    axes.set_ylim(max(min(qualities) - room, 0), min(max(qualities) + room, 1.02))
    plain_ticks(axes.yaxis)
    axes.grid(axis="y")


def _name_points(axes: Axes, points: Sequence[Point], best: Sequence[Point]) -> None:
    """Name each system once, beside one of its dots, where there is room."""
    scale = 72 / axes.figure.dpi
    box = axes.get_window_extent()
    inside = Box(box.x0 * scale, box.y0 * scale, box.x1 * scale + 14, box.y1 * scale + 6)

    def on_paper(points: Sequence[Point]) -> Values:
        return axes.transData.transform([(each.cost, each.quality) for each in points]) * scale

    by_system: dict[str, list[Point]] = {}
    for point in sorted(points, key=lambda point: -point.quality):
        by_system.setdefault(point.system, []).append(point)
    dots = {name: on_paper(pair) for name, pair in by_system.items()}
    taken = [Box.around(x, y, 3.5, 3.5) for x, y in on_paper(points)]
    for path, half in ((on_paper(best), 2.5), *((pair, 1) for pair in dots.values())):
        taken += [Box.around(x, y, half, half) for x, y in along(path)]
    unbeaten_names = {point.system for point in best}
    sizes = [
        (text_width(clean(name), SMALL_SIZE) * (1.08 if name in unbeaten_names else 1), _HEIGHT)
        for name in dots
    ]
    places = place_labels(list(dots.values()), sizes, inside, taken)
    to_data = axes.transData.inverted()
    for name, place in zip(dots, places, strict=True):
        if place is None:
            continue
        found = place.box
        if len(place.leader):
            line = to_data.transform(place.leader[[0, -1]] / scale)
            axes.plot(*line.T, color=colour_of(name), linewidth=0.5, zorder=2)
        write(
            axes,
            clean(name),
            ((found.left + found.right) / 2, (found.bottom + found.top) / 2),
            of="figure points",
            ha="center",
            va="center",
            color=text_colour(colour_of(name)),
            fontweight="bold" if name in unbeaten_names else "normal",
        )
