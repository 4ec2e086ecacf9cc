"""Figures of the quality of all systems: by rule, by training time, by prediction speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from setrnn.metrics import MEASURES
from setrnn.report.figures.style import (
    BOTTOM,
    INK,
    LEFT,
    MUTED_INK,
    PAPER,
    SMALL_SIZE,
    TOP,
    WHOLE,
    WIDTH,
    Line,
    Picture,
    add_axes,
    clean_name,
    colour_of,
    draw_lines,
    fit_heights,
    join_key,
    make_look,
    name_lines,
    names_width,
    new_drawing,
    set_plain_ticks,
    text_colour,
    text_width,
    title_axes,
    write,
)
from setrnn.report.score_tables import RULE_FOR
from setrnn.report.systems import (
    QUALITY_RULE,
    Point,
    System,
    Systems,
    find_frontier,
    list_prediction_points,
    list_training_points,
)
from setrnn.report.wording import format_score, join_names

Values = npt.NDArray[np.float64]

SHOWN = ("instance_f1", "label_f1")
_ROW = 20  # points
Ticks = Sequence[Mapping[float, str]]  # levels, the coarsest first

_MOST_TICKS = 5
_TIMES: dict[float, str] = {
    0.01: "10 ms", 0.1: ".1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min",
    3600: "1 h", 36_000: "10 h", 360_000: "100 h",
}  # fmt: skip
_MORE_TIMES = _TIMES | {
    5: "5 s", 30: "30 s", 300: "5 min", 1800: "30 min", 18_000: "5 h",
}  # fmt: skip
_MOST_TIMES = _MORE_TIMES | {2: "2 s", 120: "2 min", 7200: "2 h"}
_SPEEDS: dict[float, str] = {10.0**k: f"{10**k:,}" for k in range(8)}
_MORE_SPEEDS = _SPEEDS | {n * 10.0**k: f"{n * 10**k:,}" for k in range(8) for n in (2, 5)}


def draw_overview(systems: Systems) -> Picture | None:
    """Draw two measures of every system, in descending order of instance-F1."""
    found = {
        system.name: {measure: _measure(system, measure) for measure in SHOWN}
        for system in systems.all
    }
    best = {
        measure: max(found, key=lambda name: _highest(found[name][measure])) for measure in SHOWN
    }
    found = dict(sorted(found.items(), key=lambda item: -_highest(item[1]["instance_f1"])))
    many = any(len(system.runs) > 1 for system in systems.all)
    dots = " Dots are means, lines the standard deviation over seeds." if many else " One seed."
    return Picture(
        "All systems",
        "Each system on test by its own rule, as in the paper, and by the rule for the measure "
        f"(f1, label-f1), in descending order of instance-F1.{dots}",
        f"Dots of instance-F1 and label-F1 of {join_names(list(found))}. Highest: "
        + join_names(
            [
                f"{best[m]} in {MEASURES[m]} with {format_score(_highest(found[best[m]][m]))}"
                for m in SHOWN
            ]
        )
        + ".",
        _draw_overview(found),
    )


def _measure(system: System, measure: str) -> dict[str, Values]:
    """Return the scores by seed, by the own rule and, if there are any, by that for the measure."""
    rules = {"own": system.own_rule, "made": RULE_FOR[measure]}
    return {
        kind: system.instance_f1(rule)
        if measure == "instance_f1"
        else np.asarray(system.label_f1(rule).mean(axis=1))
        for kind, rule in rules.items()
        if system.has(rule)
    }


def _highest(scores: Mapping[str, Values]) -> float:
    return max(float(each.mean()) for each in scores.values())


def _draw_overview(found: Mapping[str, Mapping[str, Mapping[str, Values]]]) -> Drawing:
    left = 10 + max(text_width(clean_name(name), SMALL_SIZE) for name in found)
    height = 24 + _ROW * len(found) + 44
    drawing = new_drawing(height / 72)
    width = (72 * WIDTH - left - 10 - 16) / len(SHOWN)
    for place, measure in enumerate(SHOWN):
        start = left + place * (width + 16)
        axes = add_axes(drawing, start, 44, 72 * WIDTH - start - width, 24)
        for row, (name, scores) in enumerate(found.items()):
            _draw_dots(axes, -row, scores[measure], colour_of(name))
            if place == 0:
                text, colour = clean_name(name), text_colour(colour_of(name))
                beside = (0, -row), (-6, 0), (WHOLE, "data")
                write(axes, text, *beside, color=colour, ha="right", va="center")
        axes.set_ylim(-len(found) + 0.4, 0.6)
        axes.set_yticks(-np.arange(len(found)), [""] * len(found))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.08)
        axes.set_xlim(axes.get_xlim())
        set_plain_ticks(axes.xaxis, most=4)
        axes.grid()
        axes.set_title(MEASURES[measure], color=INK)
    key = join_key("○ own rule", "● rule for the measure")
    at = (left - 2) / (72 * WIDTH), 8 / height
    drawing.text(*at, key, fontsize=SMALL_SIZE, color=MUTED_INK)
    return drawing


def _draw_dots(axes: Axes, row: float, scores: Mapping[str, Values], colour: str) -> None:
    """Draw means, and as lines the standard deviations over seeds."""
    for kind, values in scores.items():
        y, fill = (row + 0.14, PAPER) if kind == "own" else (row - 0.14, colour)
        mean, std = values.mean(), values.std(ddof=1) if len(values) > 1 else 0.0
        axes.plot((mean - std, mean + std), (y, y), color=colour, linewidth=1)
        axes.plot(mean, y, "o", color=colour, markerfacecolor=fill, markersize=5, zorder=4)


def draw_training_time(systems: Systems) -> Picture | None:
    """Draw instance-F1 against the mean training time."""
    points = list_training_points(systems)
    if not points:
        return None
    best = find_frontier(points)
    return Picture(
        "Quality against training time",
        f"Instance-F1 on test against training time, {systems.over_seeds}. Time is on a "
        "logarithmic axis. The grey band connects the systems that no other beats in both quality "
        "and time." + _note_shared_machine(systems),
        "Dots of instance-F1 against training time. " + _list_unbeaten(best, _format_seconds),
        _draw_costs(points, best, "training time", (_TIMES, _MORE_TIMES, _MOST_TIMES)),
    )


def draw_prediction_speed(systems: Systems) -> Picture | None:
    """Draw instance-F1 against documents per second."""
    points = list_prediction_points(systems)
    if not points:
        return None
    best = find_frontier(points)
    fast, unbeaten = (
        [replace(point, seconds=1 / point.seconds) for point in some] for some in (points, best)
    )
    return Picture(
        "Quality against prediction speed",
        "Instance-F1 on test against the number of documents tagged per second, "
        f"{systems.over_seeds}. Speed is on a logarithmic axis, faster to the right. The grey band "
        "connects the systems that no other beats in both quality and speed."
        + _note_shared_machine(systems),
        "Dots of instance-F1 against prediction speed. "
        + _list_unbeaten(best, lambda seconds: f"{1 / seconds:,.0f}/s"),
        _draw_costs(fast, unbeaten, "documents tagged per second", (_SPEEDS, _MORE_SPEEDS)),
    )


def _list_unbeaten(best: Sequence[Point], format_cost: Callable[[float], str]) -> str:
    names = [
        f"{each.system} by rule {each.rule} ({format_score(each.quality)}, "
        f"{format_cost(each.seconds)})"
        for each in best
    ]
    return f"Not beaten in both: {join_names(names)}."


def _format_seconds(value: float) -> str:
    if value < 100:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 6000 else f"{value / 3600:.1f} h"


def _note_shared_machine(systems: Systems) -> str:
    """Write that runs shared the machine, which makes them slower."""
    n = {run.costs.n_jobs for system in systems.all for run in system.runs if run.costs}
    if max(n, default=1) < 2:
        return ""
    at_once = f"{min(n)} to {max(n)}" if len(n) > 1 else str(max(n))
    return f" Runs shared the machine ({at_once} at once), so a single run would be faster."


def _draw_costs(
    points: Sequence[Point], best: Sequence[Point], x_label: str, ticks: Ticks
) -> Drawing:
    """Draw both rules of each system connected by a line, and the frontier."""
    drawing = new_drawing(4.2)
    names = list(dict.fromkeys(point.system for point in points))
    axes = add_axes(drawing, LEFT, BOTTOM, names_width(names), TOP + 18)
    _set_limits(axes, points, ticks)
    x, y = _list_coordinates(best)
    axes.plot(x, y, color="#cfcfcf", linewidth=5, solid_capstyle="round", zorder=1)
    lines, looks = {}, {name: make_look(name) for name in names}
    for name in names:
        pair = sorted((each for each in points if each.system == name), key=lambda p: p.seconds)
        lines[name] = Line(*_list_coordinates(pair))
        for point in pair:
            is_filled = point.rule == QUALITY_RULE or not point.is_own
            axes.plot(
                point.seconds,
                point.quality,
                "o",
                color=looks[name].colour,
                markersize=5.5,
                markerfacecolor=looks[name].colour if is_filled else PAPER,
                zorder=5,
            )
    draw_lines(axes, lines, looks)
    name_lines(axes, lines, looks)
    title_axes(axes, "instance-F1")
    key = join_key("○ own rule", "● rule f1", "▬ not beaten in both")
    write(axes, key, (0, 1), (-LEFT + 4, 26), of=WHOLE)
    axes.set_xlabel(x_label)
    return drawing


def _list_coordinates(points: Sequence[Point]) -> tuple[Values, Values]:
    return np.array([each.seconds for each in points]), np.array([each.quality for each in points])


def _set_limits(axes: Axes, points: Sequence[Point], ticks: Ticks) -> None:
    costs = [point.seconds for point in points]
    low, high = min(costs), max(costs)
    room = max((high / low) ** 0.12, 1.6)
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    inside: dict[float, str] = {}
    for level in ticks:  # the finest level that fits
        found = {value: text for value, text in level.items() if low / room <= value <= high * room}
        inside = found if len(found) <= _MOST_TICKS else inside
    axes.set_xticks(list(inside), list(inside.values()))
    axes.set_xticks([], minor=True)
    fit_heights(axes, [np.array([point.quality for point in points])])
