"""How many documents need no second look, and how many of those are right."""

from __future__ import annotations

import numpy as np

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
from setrnn.report.figures.style import Picture, add_axes, looks, new_drawing
from setrnn.report.figures.words import listed, share
from setrnn.report.series.acceptance import acceptance_curve, largest_share
from setrnn.report.series.probabilities import probabilities
from setrnn.report.series.systems import Systems

SHARES = np.linspace(0.05, 1, 39)
TARGET = 0.9


def accepted(systems: Systems) -> Picture | None:
    """Draw the accuracy of the accepted against their share, a line a system."""
    lines = {}
    for system in systems.all:
        found = probabilities(system)
        if found is not None:
            runs = [acceptance_curve(*run).accuracy_at(SHARES) for run in zip(*found, strict=True)]
            lines[system.name] = Line(SHARES, np.mean(runs, axis=0))
    if not lines:
        return None
    drawing = new_drawing(3.9)
    axes = add_axes(drawing, LEFT, BOTTOM, names_width(list(lines)), TOP)
    look = looks(systems)
    fit_heights(axes, [line.y for line in lines.values()])
    axes.set_xlim(0, 1)
    axes.set_xticks((0, 0.25, 0.5, 0.75, 1), ("0%", "25%", "50%", "75%", "100%"))
    draw_lines(axes, lines, look)
    name_lines(axes, lines, look)
    title_axes(axes, "exactly right, of the accepted")
    axes.set_xlabel("accepted documents")
    return Picture(
        "Accepted documents",
        "Accept the documents with the highest calibrated probability (rule set): the share "
        "accepted against how many of those have exactly the true set. At 100% this is subset "
        f"accuracy. At least {SHARES[0]:.0%} are accepted; {systems.over_seeds}.",
        "Curves of accuracy against the accepted share. " + _reached(lines),
        drawing,
    )


def _reached(lines: dict[str, Line]) -> str:
    ranked = sorted(
        ((largest_share(line.x, line.y, TARGET), name) for name, line in lines.items()),
        key=lambda item: (-(item[0] or 0), item[1]),
    )
    reached = [f"{name} accepts {part:.0%}" for part, name in ranked[:3] if part is not None]
    at_most = max((float(line.y[-1]), name) for name, line in lines.items())
    end = f"With all accepted, {at_most[1]} is right most often: {share(at_most[0])}."
    if not reached:
        return f"None accepts {SHARES[0]:.0%} or more with {TARGET:.0%} right. {end}"
    return f"With {TARGET:.0%} right, {listed(reached)}. {end}"
