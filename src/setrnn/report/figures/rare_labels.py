"""The paper's Figure 2: how good rare labels are."""

from __future__ import annotations

import numpy as np

from setrnn.report.figures.lines import Groups, draw_over_groups, short_count
from setrnn.report.figures.style import Picture, counted, listed, looks, share
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
        Groups(bins.bins.astype(np.float64) + 0.5, n.tolist(), _ticks(bins), "labels"),
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
    rarest = _range(bins, int(bins.bins[0]))
    ranking = sorted(lines, key=lambda name: -lines[name][0])
    return Picture(
        "Rare labels",
        f"Mean F1 of the {systems.comparison.n_labels:,} labels, in groups by how many training "
        "documents have them; the bars count the labels of each group. Each system by its own "
        f"rule, mean over seeds.{absent}",
        f"Lines of mean label F1 by training frequency. In the rarest group ({rarest}, "
        f"{counted(int(n[0]), 'label')}) "
        + listed([f"{name} has {share(lines[name][0])}" for name in ranking[:3]])
        + (f"; the last is {ranking[-1]} with {share(lines[ranking[-1]][0])}" * (len(ranking) > 3))
        + ".",
        drawing,
    )


def _ticks(bins: FrequencyBins) -> list[tuple[float, str]]:
    """Mark the edges of the bins; labels that train never had have no edges."""
    edges = np.arange(max(int(bins.bins[0]), 0), int(bins.bins[-1]) + 2)
    ticks = [(float(edge), short_count(bins.base ** int(edge))) for edge in edges]
    return [(NEVER + 0.5, "0"), *ticks] if bins.bins[0] == NEVER else ticks


def _range(bins: FrequencyBins, place: int) -> str:
    if place == NEVER:
        return "never in train"
    return f"{bins.base**place:,} to {bins.base ** (place + 1) - 1:,} training documents"
