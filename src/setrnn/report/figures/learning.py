"""The figure of learning curves: quality on the valid part by epoch."""

# R runs, E epochs

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from setrnn.methods import METHODS
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
from setrnn.report.figures.style import PAPER, Picture, add_axes, choose_looks, new_drawing
from setrnn.report.systems import Systems
from setrnn.report.wording import format_score, join_names

METRIC = "instance_f1"

Epochs = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class LearningCurve:
    """The mean over runs, and the epoch that was kept."""

    epochs: npt.NDArray[np.int64]  # (E,) the epochs that all runs have
    values: npt.NDArray[np.float64]  # (E,)
    best: tuple[float, float]  # means over runs: the epoch kept, its value


def draw_learning(systems: Systems) -> Picture | None:
    """Draw the mean over seeds, and the epoch that was kept."""
    curves: dict[str, LearningCurve] = {}
    for system in systems.all:
        curve = make_learning_curve(
            [run.epochs for run in system.runs], [run.best_epoch for run in system.runs], METRIC
        )
        if curve is not None:
            curves[system.name] = curve
    if not curves:
        return None
    kept = sorted(curves, key=lambda name: -curves[name].best[1])
    values = [
        f"{name} {format_score(curves[name].best[1])} (epoch {curves[name].best[0]:.0f})"
        for name in kept
    ]
    return Picture(
        "Learning",
        "Instance-F1 on the valid part after each epoch, by the system's own rule, "
        f"{systems.over_seeds}, for the epochs that all runs have. The dot is the epoch kept."
        + _note_first_objectives(curves),
        f"Lines of instance-F1 on valid by epoch. Kept: {join_names(values)}.",
        _draw(systems, curves),
    )


def _note_first_objectives(names: Iterable[str]) -> str:
    two = [name for name in names if name in METHODS and METHODS[name].first_objective]
    return f" The first epochs of {join_names(two)} train as vinyals-uniform." if two else ""


def _draw(systems: Systems, curves: dict[str, LearningCurve]) -> Drawing:
    lines = {
        name: Line(curve.epochs.astype(np.float64), curve.values) for name, curve in curves.items()
    }
    dots = {name: Line(*np.array(curve.best)[:, None]) for name, curve in curves.items()}
    drawing = new_drawing(3.9)
    axes = add_axes(drawing, LEFT, BOTTOM, names_width(list(lines)), TOP)
    looks = choose_looks(systems)
    # The first epochs are far below the others: leave them outside the limits.
    late = [line.y[len(line.y) // 4 :] for line in lines.values()]
    fit_heights(axes, [*late, *(dot.y for dot in dots.values())])
    last = max(float(line.x.max()) for line in (*lines.values(), *dots.values()))
    axes.set_xlim(0.5, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    draw_lines(axes, lines, looks)
    for name, dot in dots.items():
        look, size = looks[name], 5 if looks[name].is_focus else 3
        colour, level = look.colour, look.order + 1
        axes.plot(
            dot.x, dot.y, "o", color=colour, markersize=size, markeredgecolor=PAPER, zorder=level
        )
    name_lines(axes, lines, looks)
    title_axes(axes, "instance-F1 on valid")
    axes.set_xlabel("epoch")
    return drawing


def make_learning_curve(
    runs: Sequence[Epochs], best_epochs: Sequence[int | None], metric: str
) -> LearningCurve | None:
    """Average the epochs that all runs have; None where there are none."""
    measured, kept = [], []
    for epochs, best in zip(runs, best_epochs, strict=True):
        values = {
            int(row["epoch"]): float(row[metric]) for row in epochs if row.get(metric) is not None
        }
        if values:
            epoch = best if best in values else max(values, key=lambda each: values[each])
            measured.append(values)
            kept.append((epoch, values[epoch]))
    if not measured:
        return None
    shared = sorted(set.intersection(*(set(values) for values in measured)))
    if not shared:
        return None
    epoch, value = np.mean(kept, axis=0)
    return LearningCurve(
        epochs=np.array(shared, dtype=np.int64),
        values=np.array([np.mean([values[each] for values in measured]) for each in shared]),
        best=(float(epoch), float(value)),
    )
