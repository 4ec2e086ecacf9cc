"""The paper's Figure 2: how probability spreads over the orders of the predicted set."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from setrnn.report.figures.style import (
    INK,
    MUTED_INK,
    PAPER,
    TEXT_SIZE,
    Picture,
    add_axes,
    colour_of,
    new_drawing,
    text_colour,
)
from setrnn.report.figures.words import WHOLE, clean, counted, listed, share, text_width, write
from setrnn.report.series.systems import System, Systems

Values = npt.NDArray[np.float64]

N_BINS = 40
_ROW = 28  # points


def entropy(systems: Systems) -> Picture | None:
    """Draw the distribution of the entropy, one row a system, the sharpest first."""
    found = {system.name: entropies(system) for system in systems.all}
    found = {name: values for name, values in found.items() if len(values)}
    if not found:
        return None
    found = dict(sorted(found.items(), key=lambda item: (float(np.median(item[1])), item[0])))
    medians = [f"{name} {share(float(np.median(values)), 2)}" for name, values in found.items()]
    n = [len(values) for values in found.values()]
    return Picture(
        "How sharp the orders are",
        "Entropy over the orders of the predicted set, divided by its largest value: 0 is one "
        "order only, 1 all orders alike. Each row shows how the documents spread, scaled to its "
        "own peak; the dot is the median. Only documents with two predicted labels or more, all "
        f"seeds together: {_between(min(n), max(n))} a system. Of sets of more than four labels, "
        "the 24 most probable orders.",
        f"Distributions of the normalised entropy by system. Medians: {listed(medians)}.",
        _draw(found),
    )


def entropies(system: System) -> Values:
    """Return the known entropies of all runs, between 0 and 1."""
    known = [
        value
        for test in system.tests
        for value in test.order_entropy or ()
        if value is not None and np.isfinite(value)
    ]
    return np.clip(np.array(known, dtype=np.float64), 0, 1)


def _draw(found: Mapping[str, Values]) -> Drawing:
    left = 10 + max(text_width(clean(name)) for name in found)
    drawing = new_drawing((_ROW * len(found) + 74) / 72)
    axes = add_axes(drawing, left, 40, 48, 24)
    for row, (name, values) in enumerate(found.items()):
        _draw_row(axes, row, name, values)
    write(axes, "median", (1, 1), (10, 5), of=WHOLE)
    axes.set(xlim=(0, 1), ylim=(-len(found) + 0.8, 1))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xticks((0, 0.25, 0.5, 0.75, 1), ("0", ".25", ".5", ".75", "1"))
    axes.set_xlabel("normalised entropy over orders")
    write(axes, "one order", (0, 1), (0, 5), of=WHOLE)
    write(axes, "all orders alike", (1, 1), (0, 5), of=WHOLE, ha="right")
    return drawing


def _draw_row(axes: Axes, row: int, name: str, values: Values) -> None:
    """Draw how the documents of a system spread, its name and its median."""
    colour = colour_of(name)
    n, edges = np.histogram(values, bins=N_BINS, range=(0, 1))
    axes.stairs(
        -row + 0.85 * n / n.max(),
        edges,
        baseline=-row,
        fill=True,
        color=colour,
        alpha=0.55,
        lw=0,
    )
    axes.plot((0, 1), (-row, -row), color=MUTED_INK, linewidth=0.5)
    median = float(np.median(values))
    axes.plot(
        median,
        -row,
        "o",
        color=text_colour(colour),
        markersize=5.5,
        markeredgecolor=PAPER,
        zorder=5,
        clip_on=False,
    )
    write(
        axes,
        clean(name),
        (0, -row + 0.3),
        (-6, 0),
        ha="right",
        va="center",
        color=text_colour(colour),
        fontsize=TEXT_SIZE,
    )
    write(
        axes,
        share(median, 2),
        (1, -row + 0.3),
        (10, 0),
        va="center",
        fontsize=TEXT_SIZE,
        color=INK,
    )


def _between(low: int, high: int) -> str:
    return counted(low, "document") if low == high else f"{low:,} to {counted(high, 'document')}"
