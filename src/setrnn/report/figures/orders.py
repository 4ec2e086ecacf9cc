"""Which label orders each system learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Drawing

from setrnn.report.figures.style import (
    PAPER,
    SMALL_SIZE,
    WIDTH,
    Picture,
    add_axes,
    colour_of,
    new_drawing,
    text_colour,
    text_on,
)
from setrnn.report.figures.words import clean, listed, share, text_width, write
from setrnn.report.series.orders import (
    companions,
    frequency_agreement,
    mean_ranks,
    of_two_or_more,
)
from setrnn.report.series.systems import Systems

Values = npt.NDArray[np.float64]

MOST_LABELS = 12
_ROW = 17  # points
# Blue first, orange last, paper where a label has no place of its own.
_PLACES = LinearSegmentedColormap.from_list("places", ("#0072b2", "#f2f2f2", "#e69f00"))


def orders(systems: Systems) -> Picture | None:
    """Draw where frequent labels stand in the best order of true sets, a column a system."""
    n_labels = systems.comparison.n_labels
    labels = companions(systems.comparison.truth, n_labels, MOST_LABELS)
    ranks: dict[str, Values] = {}
    agreement: dict[str, float] = {}
    for system in systems.all:
        runs = [test.true_orders for test in system.tests if test.true_orders]
        agreements = [frequency_agreement(run) for run in runs]
        known = [value for value in agreements if value is not None]
        if known:
            found = np.array([mean_ranks(run, n_labels)[labels] for run in runs])
            ranks[system.name] = _mean_of_known(found)
            agreement[system.name] = float(np.mean(known))
    if not ranks:
        return None
    n = len(of_two_or_more(systems.comparison.truth))
    names = [systems.comparison.labels[label] for label in labels]
    return Picture(
        "Label orders learned",
        "Where labels stand in the most probable order of the true set: 0 is always first, 1 "
        f"always last. On the {n:,} test documents with two labels or more, "
        f"{systems.over_seeds}; labels by falling training frequency. The last row says how often, "
        "of two labels of a document, the one more frequent in train comes first: 100% is the "
        "order by frequency, 50% is chance.",
        "Mean relative rank of frequent labels by system. The more frequent label comes first in "
        + listed([f"{value:.0%} of pairs for {name}" for name, value in agreement.items()])
        + ".",
        _draw(names, ranks, agreement),
    )


def _mean_of_known(runs: Values) -> Values:
    """Average over runs (R, G), NaN where no run knows."""
    n = np.isfinite(runs).sum(axis=0)
    return np.where(n > 0, np.nansum(runs, axis=0) / np.maximum(n, 1), np.nan)


def _draw(
    labels: Sequence[str], ranks: Mapping[str, Values], agreement: Mapping[str, float]
) -> Drawing:
    rows = [clean(label, 18) for label in labels]
    last = "frequent first"
    left = 10 + max(text_width(row, SMALL_SIZE) for row in [*rows, last])
    column = min((72 * WIDTH - left - 8) / len(ranks), 60)
    slant = max(text_width(clean(name), SMALL_SIZE) for name in ranks)
    height = slant + 12 + _ROW * (len(rows) + 1) + 8 + 6
    drawing = new_drawing(height / 72)
    right = 72 * WIDTH - left - column * len(ranks)
    axes = add_axes(drawing, left, 6 + _ROW + 8, right, slant + 12)
    grid = np.array(list(ranks.values())).T  # labels x systems
    axes.pcolormesh(
        np.ma.masked_invalid(grid),
        cmap=_PLACES,
        vmin=0,
        vmax=1,
        edgecolors=PAPER,
        linewidth=1,
    )
    axes.invert_yaxis()
    for (row, place), value in np.ndenumerate(grid):
        if np.isfinite(value):
            axes.text(
                place + 0.5,
                row + 0.5,
                share(float(value), 2),
                ha="center",
                va="center_baseline",
                fontsize=SMALL_SIZE - 1,
                color=text_on(_PLACES(float(value))),
            )
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.set_xticks([])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    below = len(rows) + 0.5 + 8 / _ROW
    for place, (name, value) in enumerate(agreement.items()):
        write(
            axes,
            clean(name),
            (place + 0.5, 0),
            (0, 5),
            rotation=90,
            ha="center",
            va="bottom",
            color=text_colour(colour_of(name)),
        )
        axes.text(
            place + 0.5,
            below,
            f"{value:.0%}",
            ha="center",
            va="center_baseline",
            fontsize=SMALL_SIZE,
        )
    write(axes, last, (0, below), (-3.5, 0), ha="right", va="center_baseline")
    return drawing
