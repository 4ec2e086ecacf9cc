"""How networks learn: their quality on the valid part, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from setrnn.report.figures.lines import (
    BOTTOM,
    LEFT,
    TOP,
    Line,
    draw_lines,
    fit_heights,
    name_lines,
    names_width,
    title_axes,
)
from setrnn.report.figures.style import PAPER, Picture, add_axes, looks, new_drawing
from setrnn.report.figures.words import listed, share
from setrnn.report.series.learning import LearningCurve, learning_curve
from setrnn.report.series.systems import Systems

METRIC = "instance_f1"


def learning(systems: Systems) -> Picture | None:
    """Draw the mean over seeds, and the epoch that was kept."""
    curves: dict[str, LearningCurve] = {}
    for system in systems.all:
        curve = learning_curve(
            [run.epochs for run in system.runs], [run.best_epoch for run in system.runs], METRIC
        )
        if curve is not None:
            curves[system.name] = curve
    if not curves:
        return None
    kept = sorted(curves, key=lambda name: -curves[name].best[1])
    told = [
        f"{name} {share(curves[name].best[1])} (epoch {curves[name].best[0]:.0f})" for name in kept
    ]
    return Picture(
        "Learning",
        "Instance-F1 on the valid part after each epoch, by the system's own rule, "
        f"{systems.over_seeds}, as far as all runs went; the dot is the epoch kept."
        + _starts(curves),
        f"Lines of instance-F1 on valid by epoch. Kept: {listed(told)}.",
        _draw(systems, curves),
    )


def _starts(names: Iterable[str]) -> str:
    two = [name for name in names if name in ("vinyals-sample", "vinyals-max")]
    return f" The first epochs of {listed(two)} train as vinyals-uniform does." if two else ""


def _draw(systems: Systems, curves: dict[str, LearningCurve]) -> Drawing:
    lines = {
        name: Line(curve.epochs.astype(np.float64), curve.values) for name, curve in curves.items()
    }
    dots = {name: Line(*np.array(curve.best)[:, None]) for name, curve in curves.items()}
    drawing = new_drawing(3.9)
    axes = add_axes(drawing, LEFT, BOTTOM, names_width(list(lines)), TOP)
    look = looks(systems)
    # The first epochs are far below: lines come in from there.
    late = [line.y[len(line.y) // 4 :] for line in lines.values()]
    fit_heights(axes, [*late, *(dot.y for dot in dots.values())])
    last = max(float(line.x.max()) for line in (*lines.values(), *dots.values()))
    axes.set_xlim(0.5, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    draw_lines(axes, lines, look)
    for name, dot in dots.items():
        axes.plot(
            dot.x,
            dot.y,
            "o",
            color=look[name].colour,
            markersize=5 if look[name].is_focus else 3,
            markeredgecolor=PAPER,
            zorder=look[name].order + 1,
        )
    name_lines(axes, lines, look)
    title_axes(axes, "instance-F1 on valid")
    axes.set_xlabel("epoch")
    return drawing
