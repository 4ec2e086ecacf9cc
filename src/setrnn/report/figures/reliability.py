"""Whether the probability of a set says how often it is right, before and after calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from setrnn.report.figures.reliability import reliability as measure
from setrnn.report.figures.style import (
    FAINT,
    MUTED_INK,
    WIDTH,
    Picture,
    add_axes,
    colour_of,
    new_drawing,
    text_colour,
)
from setrnn.report.figures.words import WHOLE, clean, listed, share, write
from setrnn.report.series.probabilities import probabilities
from setrnn.report.series.systems import System, Systems
from setrnn.tagging.acceptance import Reliability

Values = npt.NDArray[np.float64]

N_COLUMNS, N_BINS = 3, 10


@dataclass(frozen=True)
class _Trust:
    """All runs together, and the mean of their errors."""

    diagram: Reliability
    error: float


def reliability(systems: Systems) -> Picture | None:
    """Draw one small diagram a system."""
    found = {}
    for system in systems.all:
        after = _trust(system, is_raw=False)
        if after is not None:
            found[system.name] = (_trust(system, is_raw=True), after)
    if not found:
        return None
    errors = [
        f"{name} "
        + (f"{share(before.error)} before and " if before else "")
        + f"{share(after.error)} after"
        for name, (before, after) in found.items()
    ]
    return Picture(
        "Can probabilities be trusted?",
        "How often predicted sets (rule set) are exactly right, by their probability: on the "
        "diagonal, as often as they say. Grey: the model's own probability; in colour: calibrated "
        "on the valid part. The numbers are the expected calibration errors, before → after, "
        f"{systems.over_seeds}; each point holds a like share of the {systems.n_documents:,} test "
        "documents.",
        f"Reliability diagrams. Calibration errors: {listed(errors)}.",
        _draw(found),
    )


def _trust(system: System, is_raw: bool) -> _Trust | None:
    found = probabilities(system, is_raw)
    if found is None:
        return None
    probs, is_right = found
    errors = [measure(*run).error for run in zip(probs, is_right, strict=True)]
    return _Trust(measure(probs.ravel(), is_right.ravel(), N_BINS), float(np.mean(errors)))


def _draw(found: Mapping[str, tuple[_Trust | None, _Trust]]) -> Drawing:
    n_columns = min(N_COLUMNS, max(len(found), 2))
    n_rows = -(-len(found) // n_columns)
    side = (72 * WIDTH - 34 - 8 - 12 * (n_columns - 1)) / n_columns
    head = 30  # points over each diagram: its name and its errors
    height = 44 + n_rows * (side + head)
    drawing = new_drawing(height / 72)
    for place, (name, (before, after)) in enumerate(found.items()):
        row, column = divmod(place, n_columns)
        left = 34 + column * (side + 12)
        top = row * (side + head) + head
        axes = add_axes(drawing, left, height - top - side, 72 * WIDTH - left - side, top)
        _draw_one(axes, name, before, after)
        is_lowest = place + n_columns >= len(found)
        axes.set_xticks((0, 0.5, 1), ("0", ".5", "1") if is_lowest else ("", "", ""))
        axes.set_yticks((0, 0.5, 1), ("0", ".5", "1") if column == 0 else ("", "", ""))
    middle = 34 + (72 * WIDTH - 42) / 2
    drawing.text(middle / (72 * WIDTH), 8 / height, "probability of the predicted set", ha="center")
    drawing.text(
        4 / (72 * WIDTH),
        (44 + n_rows * (side + head) / 2) / height,
        "how often it is right",
        rotation=90,
        va="center",
    )
    return drawing


def _draw_one(axes: Axes, name: str, before: _Trust | None, after: _Trust) -> None:
    """Draw the diagram of one system, its name and its errors above."""
    axes.plot((0, 1), (0, 1), color=FAINT, linewidth=0.8)
    if before is not None:
        _line(axes, before.diagram, MUTED_INK, 0.9)
    _line(axes, after.diagram, colour_of(name), 1.8)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    write(axes, clean(name, 20), (0, 1), (0, 14), of=WHOLE, color=text_colour(colour_of(name)))
    errors = f"{share(before.error)} → {share(after.error)}" if before else share(after.error)
    write(axes, errors, (0, 1), (0, 4), of=WHOLE)


def _line(axes: Axes, diagram: Reliability, colour: str, width: float) -> None:
    axes.plot(
        diagram.mean_probability,
        diagram.accuracy,
        "o-",
        color=colour,
        linewidth=width,
        markersize=1.8 * width**0.5,
        markeredgewidth=0,
    )
