"""The paper's Figure 1: how good rare labels are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from setrnn.report.figures.lines import Groups, draw_over_groups
from setrnn.report.figures.style import Picture, looks
from setrnn.report.figures.words import counted, listed, share
from setrnn.report.series.groups import NEVER, FrequencyBins, frequency_bins, group_means
from setrnn.report.series.systems import Systems


def rare_labels(systems: Systems) -> Picture | None:
    """Draw the mean F1 of labels by how often they occur in train."""
    bins = frequency_bins(systems.comparison.label_counts)
    means = {
        system.name: group_means(system.label_f1(system.own_rule), bins.of_label)
        for system in systems.all
    }
    lines = {name: values for name, (values, _) in means.items()}
    n = next(iter(means.values()))[1]
    drawing = draw_over_groups(
        lines,
        _groups(bins, n.tolist()),
        looks(systems),
        "training documents of a label",
        "mean F1 of labels",
    )
    n_absent = systems.comparison.n_labels - len(
        {x for row in systems.comparison.truth for x in row}
    )
    absent = (
        f" {counted(n_absent, 'label')} without a test document "
        f"{'counts' if n_absent == 1 else 'count'} as 0."
        if n_absent
        else ""
    )
    rarest = min(int(bins.bins[0] == NEVER), len(n) - 1)  # of those that train has
    values = {name: float(line[rarest]) for name, line in lines.items()}
    ranking = sorted(lines, key=lambda name: -values[name])
    return Picture(
        "Rare labels",
        f"Mean F1 of the {systems.comparison.n_labels:,} labels, in groups by how many training "
        "documents have them; the bars count the labels of each group. Each system by its own "
        f"rule, {systems.over_seeds}.{absent}",
        f"Lines of mean label F1 by training frequency. In the rarest group "
        f"({_range(bins, int(bins.bins[rarest]))}, {counted(int(n[rarest]), 'label')}) "
        + listed([f"{name} has {share(values[name])}" for name in ranking[:3]])
        + (f"; the last is {ranking[-1]} with {share(values[ranking[-1]])}" * (len(ranking) > 3))
        + ".",
        drawing,
    )


def _groups(bins: FrequencyBins, n: Sequence[int]) -> Groups:
    """Mark the edges of the bins; labels that train never had stand left of all."""
    seen = bins.bins[bins.bins != NEVER]
    edges = range(int(seen[0]), int(seen[-1]) + 2) if len(seen) else range(0)
    ticks = [(float(edge), _short(bins.base**edge)) for edge in edges]
    x = seen + 0.5
    if len(seen) < len(bins.bins):
        never = float(seen[0]) - 1 if len(seen) else 0.0
        ticks, x = [(never, "0"), *ticks], np.append(never, x)
    return Groups(x, n, ticks, "labels")


def _short(count: int) -> str:
    return str(count) if count < 1000 else f"{count // 1000:,}k"


def _range(bins: FrequencyBins, place: int) -> str:
    if place == NEVER:
        return "never in train"
    return f"{bins.base**place:,} to {bins.base ** (place + 1) - 1:,} training documents"
