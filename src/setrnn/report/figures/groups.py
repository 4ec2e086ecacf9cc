"""Figures of quality by group: labels by training frequency, documents by set size."""

# R runs, L labels, n documents, G groups

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure as Drawing

from setrnn.comparison.records import LabelSets
from setrnn.report.figures.style import (
    BOTTOM,
    LEFT,
    SMALL_SIZE,
    TOP,
    WHOLE,
    Line,
    Look,
    Picture,
    add_axes,
    choose_looks,
    draw_lines,
    fit_heights,
    name_lines,
    names_width,
    new_drawing,
    text_width,
    title_axes,
    write,
)
from setrnn.report.systems import Systems
from setrnn.report.wording import format_count, format_score, join_names

Values = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

BASES = (2, 4, 10)
MOST_BINS, MOST_SIZES = 8, 10
LEAST_SHARE = 0.01  # of the documents; rarer set sizes share a group
NEVER = -1  # the bin of labels that do not occur in train


@dataclass(frozen=True)
class Groups:
    """The groups of a figure from left to right: their places and sizes."""

    x: Values
    n: Sequence[int]
    ticks: Sequence[tuple[float, str]]
    members: str  # the plural of a member: "labels"


@dataclass(frozen=True)
class FrequencyBins:
    """Labels by training frequency: bin b has frequencies from base^b to base^(b + 1) - 1."""

    base: int
    of_label: Counts  # (L,)

    @property
    def bins(self) -> Counts:
        """The bins that hold labels, in ascending order."""
        return np.unique(self.of_label)


@dataclass(frozen=True)
class SizeGroups:
    """Documents by the size of their true set; the last group may hold larger sets too."""

    of_document: Counts  # (n,)
    sizes: Counts  # (G,) in ascending order
    is_open: bool  # whether the last group holds larger sets too

    @property
    def names(self) -> list[str]:
        """The names of the groups."""
        names = [str(size) for size in self.sizes]
        return [*names[:-1], names[-1] + "+"] if self.is_open else names


def draw_rare_labels(systems: Systems) -> Picture | None:
    """Draw the paper's Figure 1: the mean F1 of labels by their training frequency."""
    bins = bin_by_frequency(systems.comparison.label_counts)
    lines = {
        system.name: average_groups(system.label_f1(system.own_rule), bins.of_label)
        for system in systems.all
    }
    n = np.unique(bins.of_label, return_counts=True)[1].tolist()
    x_label, y_label = "training documents per label", "mean F1 of labels"
    looks = choose_looks(systems)
    drawing = draw_over_groups(lines, _make_groups(bins, n), looks, x_label, y_label)
    n_absent = systems.comparison.n_labels - len(set(chain(*systems.comparison.truth)))
    absent = (
        f" {format_count(n_absent, 'label')} without a test document "
        f"{'counts' if n_absent == 1 else 'count'} as 0."
        if n_absent
        else ""
    )
    rarest = min(int(bins.bins[0] == NEVER), len(n) - 1)  # of those in train
    values = {name: float(line[rarest]) for name, line in lines.items()}
    ranking = sorted(lines, key=lambda name: -values[name])
    first = [f"{name} has {format_score(values[name])}" for name in ranking[:3]]
    last = f"; the last is {ranking[-1]} with {format_score(values[ranking[-1]])}"
    last = last if len(ranking) > 3 else ""
    return Picture(
        "Rare labels",
        f"Mean F1 of the {systems.comparison.n_labels:,} labels, grouped by their number of "
        "training documents. The bars show the number of labels per group. Each system by its own "
        f"rule, {systems.over_seeds}.{absent}",
        f"Lines of mean label F1 by training frequency. In the rarest group "
        f"({_format_range(bins, int(bins.bins[rarest]))}, {format_count(n[rarest], 'label')}) "
        f"{join_names(first)}{last}.",
        drawing,
    )


def _make_groups(bins: FrequencyBins, n: Sequence[int]) -> Groups:
    """Mark the edges of the bins; labels that do not occur in train are leftmost."""
    seen = bins.bins[bins.bins != NEVER]
    edges = range(int(seen[0]), int(seen[-1]) + 2) if len(seen) else range(0)
    ticks = [(float(edge), _format_edge(bins.base**edge)) for edge in edges]
    x = seen + 0.5
    if len(seen) < len(bins.bins):
        never = float(seen[0]) - 1 if len(seen) else 0.0
        ticks, x = [(never, "0"), *ticks], np.append(never, x)
    return Groups(x, n, ticks, "labels")


def _format_edge(count: int) -> str:
    return str(count) if count < 1000 else f"{count // 1000:,}k"


def _format_range(bins: FrequencyBins, place: int) -> str:
    if place == NEVER:
        return "not in train"
    return f"{bins.base**place:,} to {bins.base ** (place + 1) - 1:,} training documents"


def draw_set_size(systems: Systems) -> Picture | None:
    """Draw instance-F1 by the size of the true set."""
    groups = group_by_size(systems.comparison.truth)
    lines = {
        system.name: average_groups(system.document_f1(system.own_rule), groups.of_document)
        for system in systems.all
    }
    n = np.unique(groups.of_document, return_counts=True)[1].tolist()
    x = np.arange(len(n), dtype=np.float64)
    shown = Groups(x, n, list(zip(x.tolist(), groups.names, strict=True)), "documents")
    x_label, y_label = "true labels per document", "instance-F1"
    drawing = draw_over_groups(lines, shown, choose_looks(systems), x_label, y_label)
    extremes = [
        f"{_describe_best(lines, place)} for the {format_count(n[place], 'document')} with "
        f"{_format_size(groups.names[place])}"
        for place in sorted({0, len(n) - 1})
    ]
    return Picture(
        "Quality by set size",
        f"Instance-F1 of the {systems.n_documents:,} test documents, grouped by their number of "
        "true labels. The bars show the number of documents per group. Each system by its own "
        f"rule, {systems.over_seeds}.",
        f"Lines of instance-F1 by the size of the true set. {join_names(extremes)}.",
        drawing,
    )


def _describe_best(lines: Mapping[str, Values], place: int) -> str:
    name = max(lines, key=lambda each: lines[each][place])
    return f"{name} is best with {format_score(float(lines[name][place]))}"


def _format_size(size: str) -> str:
    return f"{size[:-1]} or more labels" if "+" in size else format_count(int(size), "label")


def bin_by_frequency(label_counts: Sequence[int], most: int = MOST_BINS) -> FrequencyBins:
    """Sort labels into bins of equal logarithmic width, as narrow as is readable."""
    counts = np.asarray(label_counts, dtype=np.int64)
    for base in BASES:
        powers = [1]
        while powers[-1] * base <= counts.max(initial=1):
            powers.append(powers[-1] * base)
        of_label = np.searchsorted(powers, counts, side="right") - 1  # 0 times: NEVER
        seen = of_label[of_label != NEVER]
        if len(seen) == 0 or seen.max() - seen.min() < most:
            break
    return FrequencyBins(base, of_label.astype(np.int64))


def group_by_size(truth: LabelSets, most: int = MOST_SIZES) -> SizeGroups:
    """Group documents by their number of true labels, the few largest sets together."""
    sizes = np.array([len(row) for row in truth], dtype=np.int64)
    least = max(2, LEAST_SHARE * len(sizes))
    at_least = np.cumsum(np.bincount(sizes)[::-1])[::-1]  # documents of this size or more
    largest = min(int(np.flatnonzero(at_least >= min(least, len(sizes))).max()), most - 1)
    grouped = np.minimum(sizes, largest)
    return SizeGroups(grouped, np.unique(grouped), bool(sizes.max() > largest))


def average_groups(values: Values, of: Counts) -> Values:
    """Average (R, L) over runs, then within each group: (G,)."""
    _, place, n = np.unique(of, return_inverse=True, return_counts=True)
    means: Values = np.bincount(place, weights=values.mean(axis=0)) / n
    return means


def draw_over_groups(
    lines: Mapping[str, Values],
    groups: Groups,
    looks: Mapping[str, Look],
    x_label: str,
    y_label: str,
) -> Drawing:
    """Draw one line per system over groups, and below it bars with the sizes of the groups."""
    n_label = f"number of {groups.members}"
    right = max(names_width(list(lines)), text_width(f" {n_label} ", SMALL_SIZE))
    drawing = new_drawing(4.3)
    above = add_axes(drawing, LEFT, 100, right, TOP)
    below = add_axes(drawing, LEFT, BOTTOM, right, 4.3 * 72 - 86, below=above)
    full = {name: Line(groups.x, values) for name, values in lines.items()}
    above.set_xlim(float(groups.x.min()) - 0.6, float(groups.x.max()) + 0.6)
    fit_heights(above, list(lines.values()))
    draw_lines(above, full, looks, marker="o")
    name_lines(above, full, looks)
    title_axes(above, y_label)
    above.tick_params(labelbottom=False)
    below.bar(groups.x, groups.n, width=0.8, color="#d0d0d0", linewidth=0)
    for x, n in zip(groups.x, groups.n, strict=True):
        write(below, format_short_count(n), (float(x), n), (0, 1.5), ha="center")
    below.set_ylim(0, 1.5 * max(groups.n))
    below.set_yticks([])
    below.spines["left"].set_visible(False)
    below.set_xticks([x for x, _ in groups.ticks], [text for _, text in groups.ticks])
    below.set_xlabel(x_label)
    write(below, n_label, (1, 0), (4, 1), of=WHOLE)
    return drawing


def format_short_count(n: float) -> str:
    """Write a count in few characters: 12k."""
    return f"{n:.0f}" if n < 10_000 else f"{n / 1000:.0f}k"
