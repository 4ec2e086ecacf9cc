"""The figure of all systems: by their own rule, and by the rule for the measure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from setrnn.metrics import MEASURES
from setrnn.report.figures.lines import set_plain_ticks
from setrnn.report.figures.style import (
    INK,
    MUTED_INK,
    PAPER,
    SMALL_SIZE,
    WHOLE,
    WIDTH,
    Picture,
    add_axes,
    clean_name,
    colour_of,
    join_key,
    new_drawing,
    text_colour,
    text_width,
    write,
)
from setrnn.report.score_tables import RULE_FOR
from setrnn.report.systems import System, Systems
from setrnn.report.wording import format_score, join_names

Values = npt.NDArray[np.float64]

SHOWN = ("instance_f1", "label_f1")
_ROW = 20  # points


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
        _draw(found),
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


def _draw(found: Mapping[str, Mapping[str, Mapping[str, Values]]]) -> Drawing:
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
