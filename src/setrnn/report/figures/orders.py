"""Figures of label orders: which orders a system learned, and how sharp they are."""

# n documents with two labels or more, L labels, in descending order of frequency

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Drawing

from setrnn.comparison.records import LabelSets
from setrnn.report.figures.style import (
    INK,
    MUTED_INK,
    PAPER,
    SMALL_SIZE,
    TEXT_SIZE,
    WHOLE,
    WIDTH,
    Picture,
    add_axes,
    clean_name,
    colour_of,
    new_drawing,
    text_colour,
    text_on,
    text_width,
    write,
)
from setrnn.report.systems import System, Systems
from setrnn.report.wording import format_count, format_decimal, join_names

Values = npt.NDArray[np.float64]

MOST_LABELS = 12
N_BINS = 40
_LABEL_ROW, _ENTROPY_ROW = 17, 28  # points
_MIDDLE: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
_UPWARDS: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom"}
_LARGE: dict[str, Any] = {"va": "center", "fontsize": TEXT_SIZE}
_DOT: dict[str, Any] = {"markersize": 5.5, "markeredgecolor": PAPER, "zorder": 5, "clip_on": False}
# Blue is first, orange is last, nearly white where a label has no fixed place.
_PLACES = LinearSegmentedColormap.from_list("places", ("#0072b2", "#f2f2f2", "#e69f00"))


def draw_orders(systems: Systems) -> Picture | None:
    """Draw the mean rank of frequent labels in the best order of true sets: a column per system."""
    n_labels = systems.comparison.n_labels
    labels = find_companions(systems.comparison.truth, n_labels, MOST_LABELS)
    ranks: dict[str, Values] = {}
    agreement: dict[str, float] = {}
    for system in systems.all:
        runs = [test.true_orders for test in system.tests if test.true_orders]
        agreements = [measure_agreement(run) for run in runs]
        known = [value for value in agreements if value is not None]
        if known:
            found = np.array([average_ranks(run, n_labels)[labels] for run in runs])
            ranks[system.name] = _average_known(found)
            agreement[system.name] = float(np.mean(known))
    if not ranks:
        return None
    n = len(keep_orderable(systems.comparison.truth))
    names = [systems.comparison.labels[label] for label in labels]
    return Picture(
        "Label orders learned",
        "The mean rank of labels in the most probable order of the true set: 0 is always first, 1 "
        f"is always last. On the {n:,} test documents with two labels or more, "
        f"{systems.over_seeds}; labels in descending order of training frequency. The last row is "
        "the share of label pairs in which the label more frequent in train comes first: 100% is "
        "the order by frequency, 50% is chance.",
        "Mean relative rank of frequent labels by system. The more frequent label comes first in "
        + join_names([f"{value:.0%} of pairs for {name}" for name, value in agreement.items()])
        + ".",
        _draw_orders(names, ranks, agreement),
    )


def _average_known(runs: Values) -> Values:
    """Average (R, G) over runs; NaN where no run has a value."""
    n = np.isfinite(runs).sum(axis=0)
    return np.where(n > 0, np.nansum(runs, axis=0) / np.maximum(n, 1), np.nan)


def _draw_orders(
    labels: Sequence[str], ranks: Mapping[str, Values], agreement: Mapping[str, float]
) -> Drawing:
    rows = [clean_name(label, 18) for label in labels]
    last = "frequent first"
    left = 10 + max(text_width(row, SMALL_SIZE) for row in [*rows, last])
    column = min((72 * WIDTH - left - 8) / len(ranks), 60)
    slant = max(text_width(clean_name(name), SMALL_SIZE) for name in ranks)
    height = slant + 12 + _LABEL_ROW * (len(rows) + 1) + 8 + 6
    drawing = new_drawing(height / 72)
    right = 72 * WIDTH - left - column * len(ranks)
    axes = add_axes(drawing, left, 6 + _LABEL_ROW + 8, right, slant + 12)
    grid = np.array(list(ranks.values())).T  # labels x systems
    known = np.ma.masked_invalid(grid)
    axes.pcolormesh(known, cmap=_PLACES, vmin=0, vmax=1, edgecolors=PAPER, linewidth=1)
    axes.invert_yaxis()
    for (row, place), value in np.ndenumerate(grid):
        if np.isfinite(value):
            text, colour = format_decimal(float(value), 2), text_on(_PLACES(float(value)))
            at = place + 0.5, row + 0.5
            write(axes, text, at, color=colour, fontsize=SMALL_SIZE - 1, **_MIDDLE)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.set_xticks([])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    below = len(rows) + 0.5 + 8 / _LABEL_ROW
    for place, (name, value) in enumerate(agreement.items()):
        colour = text_colour(colour_of(name))
        write(axes, clean_name(name), (place + 0.5, 0), (0, 5), color=colour, **_UPWARDS)
        write(axes, f"{value:.0%}", (place + 0.5, below), color=INK, **_MIDDLE)
    write(axes, last, (0, below), (-3.5, 0), ha="right", va="center_baseline")
    return drawing


def draw_entropy(systems: Systems) -> Picture | None:
    """Draw the paper's Figure 2: the entropy over orders, one row per system, sharpest first."""
    found = {system.name: list_entropies(system) for system in systems.all}
    found = {name: values for name, values in found.items() if len(values)}
    if not found:
        return None
    found = dict(sorted(found.items(), key=lambda item: (float(np.median(item[1])), item[0])))
    medians = [
        f"{name} {format_decimal(float(np.median(values)), 2)}" for name, values in found.items()
    ]
    n = [len(values) for values in found.values()]
    return Picture(
        "How sharp the orders are",
        "Entropy over the orders of the predicted set, divided by its largest possible value: at 0 "
        "one order has all the probability, at 1 all orders have the same. Each row is the "
        "distribution over documents, scaled to its own peak; the dot is the median. Documents "
        "with two predicted labels or more, all seeds together: "
        f"{_format_range(min(n), max(n))} per system. For sets of more than four labels, the 24 "
        "most probable orders are used.",
        f"Distributions of the normalised entropy by system. Medians: {join_names(medians)}.",
        _draw_entropies(found),
    )


def list_entropies(system: System) -> Values:
    """Return the known entropies of all runs, between 0 and 1."""
    known = [
        value
        for test in system.tests
        for value in test.order_entropy or ()
        if value is not None and np.isfinite(value)
    ]
    return np.clip(np.array(known, dtype=np.float64), 0, 1)


def _draw_entropies(found: Mapping[str, Values]) -> Drawing:
    left = 10 + max(text_width(clean_name(name)) for name in found)
    drawing = new_drawing((_ENTROPY_ROW * len(found) + 74) / 72)
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
    write(axes, "all orders equal", (1, 1), (0, 5), of=WHOLE, ha="right")
    return drawing


def _draw_row(axes: Axes, row: int, name: str, values: Values) -> None:
    """Draw the distribution of one system, its name and its median."""
    colour = colour_of(name)
    n, edges = np.histogram(values, bins=N_BINS, range=(0, 1))
    heights = -row + 0.85 * n / n.max()
    axes.stairs(heights, edges, baseline=-row, fill=True, color=colour, alpha=0.55, lw=0)
    axes.plot((0, 1), (-row, -row), color=MUTED_INK, linewidth=0.5)
    median = float(np.median(values))
    dark = text_colour(colour)
    axes.plot(median, -row, "o", color=dark, **_DOT)
    write(axes, clean_name(name), (0, -row + 0.3), (-6, 0), ha="right", color=dark, **_LARGE)
    write(axes, format_decimal(median, 2), (1, -row + 0.3), (10, 0), color=INK, **_LARGE)


def _format_range(low: int, high: int) -> str:
    return (
        format_count(low, "document")
        if low == high
        else f"{low:,} to {format_count(high, 'document')}"
    )


def keep_orderable(sets: LabelSets) -> list[Sequence[int]]:
    """Keep the sets with two labels or more."""
    return [row for row in sets if len(row) > 1]


def find_companions(truth: LabelSets, n_labels: int, most: int) -> list[int]:
    """Return the labels that most often share documents with others, most frequent first."""
    n = np.bincount(_flat(keep_orderable(truth)), minlength=n_labels)
    frequent = np.argsort(-n, kind="stable")[:most]
    return sorted(int(label) for label in frequent if n[label])


def average_ranks(orders: LabelSets, n_labels: int) -> Values:
    """Return the mean rank of each label, 0 (first) to 1 (last); NaN for labels without one."""
    orders = keep_orderable(orders)
    labels = _flat(orders)
    places = [np.linspace(0, 1, len(row)) for row in orders]
    sums = np.bincount(labels, np.concatenate([*places, np.empty(0)]), minlength=n_labels)
    n = np.bincount(labels, minlength=n_labels)
    return np.where(n > 0, sums / np.maximum(n, 1), np.nan)


def measure_agreement(orders: LabelSets) -> float | None:
    """Return the share of pairs whose more frequent label comes first; None without pairs."""
    by_size: dict[int, list[Sequence[int]]] = {}
    for row in keep_orderable(orders):
        by_size.setdefault(len(row), []).append(row)
    n_pairs = n_agreeing = 0
    for size, rows in by_size.items():
        first, second = np.triu_indices(size, 1)
        labels = np.array(rows)
        n_agreeing += int(np.count_nonzero(labels[:, first] < labels[:, second]))
        n_pairs += len(rows) * len(first)
    return n_agreeing / n_pairs if n_pairs else None


def _flat(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)
