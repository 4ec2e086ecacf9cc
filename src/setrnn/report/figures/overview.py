"""The figure of all systems: by their own rule, and by the rule for the measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True)
class _Dot:
    mean: float
    spread: float  # standard deviation over seeds; 0 for one seed

    @classmethod
    def of(cls, values: Values) -> _Dot:
        return cls(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0)


@dataclass(frozen=True)
class _Pair:
    own: _Dot
    made: _Dot | None  # by the rule for the measure, if the system has it


def draw_overview(systems: Systems) -> Picture | None:
    """Draw two measures of every system, in descending order of instance-F1."""
    found = {
        system.name: {measure: _pair(system, measure) for measure in SHOWN}
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


def _pair(system: System, measure: str) -> _Pair:
    def values(rule: str) -> Values:
        if measure == "instance_f1":
            return system.instance_f1(rule)
        return np.asarray(system.label_f1(rule).mean(axis=1))

    made = RULE_FOR[measure]
    return _Pair(
        _Dot.of(values(system.own_rule)), _Dot.of(values(made)) if system.has(made) else None
    )


def _highest(pair: _Pair) -> float:
    return max(pair.own.mean, pair.made.mean if pair.made else 0.0)


def _draw(found: Mapping[str, Mapping[str, _Pair]]) -> Drawing:
    left = 10 + max(text_width(clean_name(name), SMALL_SIZE) for name in found)
    height = 24 + _ROW * len(found) + 44
    drawing = new_drawing(height / 72)
    width = (72 * WIDTH - left - 10 - 16) / len(SHOWN)
    for place, measure in enumerate(SHOWN):
        start = left + place * (width + 16)
        axes = add_axes(drawing, start, 44, 72 * WIDTH - start - width, 24)
        for row, (name, pairs) in enumerate(found.items()):
            _draw_pair(axes, -row, pairs[measure], colour_of(name))
            if place == 0:
                write(
                    axes,
                    clean_name(name),
                    (0, -row),
                    (-6, 0),
                    of=(WHOLE, "data"),
                    ha="right",
                    va="center",
                    color=text_colour(colour_of(name)),
                )
        axes.set_ylim(-len(found) + 0.4, 0.6)
        axes.set_yticks(-np.arange(len(found)), [""] * len(found))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.08)
        axes.set_xlim(axes.get_xlim())
        set_plain_ticks(axes.xaxis, most=4)
        axes.grid()
        axes.set_title(MEASURES[measure], color=INK)
    drawing.text(
        (left - 2) / (72 * WIDTH),
        8 / height,
        join_key("○ own rule", "● rule for the measure"),
        fontsize=SMALL_SIZE,
        color=MUTED_INK,
    )
    return drawing


def _draw_pair(axes: Axes, row: float, pair: _Pair, colour: str) -> None:
    dots = [(pair.own, PAPER, 0.14), *([(pair.made, colour, -0.14)] if pair.made else [])]
    for dot, fill, shift in dots:
        axes.plot(
            (dot.mean - dot.spread, dot.mean + dot.spread),
            (row + shift,) * 2,
            color=colour,
            linewidth=1,
        )
        axes.plot(
            dot.mean, row + shift, "o", color=colour, markerfacecolor=fill, markersize=5, zorder=4
        )
