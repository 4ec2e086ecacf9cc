"""The figure of what a search finds of the probability of a set, by its size."""

from __future__ import annotations

import numpy as np

from setrnn.report.figures.groups import Groups, draw_over_groups
from setrnn.report.figures.style import Picture, choose_looks
from setrnn.report.set_sums import list_set_sums
from setrnn.report.systems import Systems
from setrnn.report.wording import format_score

WIDTH_SHOWN = 12  # the paper's K


def draw_set_sums(systems: Systems) -> Picture | None:
    """Draw the share of p(true set) that a search of width 12 finds, by set size."""
    records = [record for system in systems.all for record in system.runs]
    shown = [
        each for each in list_set_sums(systems.comparison, records) if each.width == WIDTH_SHOWN
    ]
    sizes = sorted({each.size for each in shown})
    if len(sizes) < 2:
        return None
    found = {(each.system, each.size): 1 - each.missed for each in shown}
    names = list(dict.fromkeys(each.system for each in shown))
    lines = {name: np.array([found[name, size] for size in sizes]) for name in names}
    n = [next(each.n_documents for each in shown if each.size == size) for size in sizes]
    x = np.arange(len(sizes), dtype=np.float64)
    ticks = list(zip(x.tolist(), map(str, sizes), strict=True))
    drawing = draw_over_groups(
        lines,
        Groups(x, n, ticks, "documents"),
        choose_looks(systems),
        "true labels per document",
        f"share of p(true set) in the {WIDTH_SHOWN} orders found",
    )
    least = min(names, key=lambda name: lines[name][-1])
    return Picture(
        "What a search finds of a set",
        f"The sum over the {WIDTH_SHOWN} orders that a search finds, divided by the sum over all "
        "orders of the true set, by the number of true labels. The bars show the number of "
        f"documents per group; {systems.over_seeds}.",
        f"Lines of the share of p(true set) that a search of width {WIDTH_SHOWN} finds, by the "
        f"size of the set. For {sizes[-1]} labels the least share is that of {least}: "
        f"{format_score(float(lines[least][-1]))}.",
        drawing,
    )
