"""Figures of curves: quality on valid by epoch, and accuracy by the share that is accepted."""

# R runs, E epochs, n documents

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from setrnn.report.figures.style import (
    BOTTOM,
    LEFT,
    PAPER,
    TOP,
    Line,
    Picture,
    add_axes,
    choose_looks,
    draw_lines,
    fit_heights,
    name_lines,
    names_width,
    new_drawing,
    title_axes,
)
from setrnn.report.systems import Systems
from setrnn.report.wording import format_score, join_names

METRIC = "instance_f1"
SHARES = np.linspace(0.05, 1, 39)
TARGET = 0.9

Values = npt.NDArray[np.float64]
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
        + _note_first_epochs(systems, curves),
        f"Lines of instance-F1 on valid by epoch. Kept: {join_names(values)}.",
        _draw(systems, curves),
    )


def _note_first_epochs(systems: Systems, curves: Iterable[str]) -> str:
    two = [
        system.name
        for system in systems.all
        if system.name in curves
        and any(len({row.get("objective") for row in run.epochs}) > 1 for run in system.runs)
    ]
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
        colour = looks[name].colour
        size, level = (5, 5) if looks[name].is_focus else (3, 4)
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


def draw_accepted(systems: Systems) -> Picture | None:
    """Draw the accuracy of the accepted documents against their share: one line per system."""
    lines = {}
    for system in systems.all:
        found = system.probabilities()
        if found is not None:
            runs = [accuracy_at(SHARES, *run) for run in zip(*found, strict=True)]
            lines[system.name] = Line(SHARES, np.mean(runs, axis=0))
    if not lines:
        return None
    drawing = new_drawing(3.9)
    axes = add_axes(drawing, LEFT, BOTTOM, names_width(list(lines)), TOP)
    looks = choose_looks(systems)
    fit_heights(axes, [line.y for line in lines.values()])
    axes.set_xlim(0, 1)
    axes.set_xticks((0, 0.25, 0.5, 0.75, 1), ("0%", "25%", "50%", "75%", "100%"))
    draw_lines(axes, lines, looks)
    name_lines(axes, lines, looks)
    title_axes(axes, "accepted documents that are exactly right")
    axes.set_xlabel("accepted documents")
    return Picture(
        "Accepted documents",
        "The documents with the highest calibrated probability (rule set) are accepted: the share "
        "of accepted documents with exactly the true set, against the share that is accepted. At "
        f"100% this is subset accuracy. The lines start at {SHARES[0]:.0%}; {systems.over_seeds}.",
        "Curves of accuracy against the accepted share. " + _describe_shares(lines),
        drawing,
    )


def _describe_shares(lines: dict[str, Line]) -> str:
    ranked = sorted(
        ((largest_share(line.x, line.y, TARGET), name) for name, line in lines.items()),
        key=lambda item: (-(item[0] or 0), item[1]),
    )
    reached = [f"{name} accepts {part:.0%}" for part, name in ranked[:3] if part is not None]
    at_most = max((float(line.y[-1]), name) for name, line in lines.items())
    end = f"With all accepted, {at_most[1]} has the highest accuracy: {format_score(at_most[0])}."
    if not reached:
        return f"None accepts {SHARES[0]:.0%} or more with {TARGET:.0%} right. {end}"
    return f"With {TARGET:.0%} right, {join_names(reached)}. {end}"


def accuracy_at(shares: Values, probs: Values, is_right: npt.NDArray[np.bool_]) -> Values:
    """Return the accuracy of given shares of the documents (n,), the most probable first.

    Ties in probability are broken at random.
    """
    order = np.argsort(-probs, kind="stable")
    last = np.append(np.flatnonzero(np.diff(probs[order])), len(probs) - 1)  # of those that tie
    n_right = np.cumsum(is_right[order])[last]
    right = np.interp(shares, np.append(0, last + 1) / len(probs), np.append(0, n_right))
    return np.asarray(right / (shares * len(probs)), dtype=np.float64)


def largest_share(shares: Values, accuracy: Values, target: float) -> float | None:
    """Return the largest share that reaches the target accuracy, or None."""
    reaches = np.flatnonzero(accuracy >= target)
    return float(shares[reaches[-1]]) if len(reaches) else None
