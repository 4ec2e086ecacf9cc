"""The figures of a report, one function each, and that of one model's calibration.

The user's matplotlib settings are neither used nor changed.
"""

# R runs, L labels, n documents, G groups

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import matplotlib as mpl
import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from setrnn.comparison.records import LabelSets
from setrnn.metrics import MEASURES
from setrnn.report.drawing import (
    MUTED_INK,
    NAMES,
    PAPER,
    STYLE,
    Line,
    Picture,
    clean_name,
    colour_of,
    draw_lines,
    name_lines,
    new_axes,
    set_plain_ticks,
    to_svg,
    write,
)
from setrnn.report.study import Study
from setrnn.report.wording import format_decimal, format_score, join_names
from setrnn.tagging.trust.acceptance import Reliability, reliability

Values = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

SHOWN = ("instance_f1", "label_f1", "subset_accuracy")
FEW = 5  # up to so many systems, all are drawn in colour
PAPERS_PAIR = ("seq2seq-rnn", "set-rnn")
SHARES = np.linspace(0.05, 1, 39)  # of accepted documents
BASES, MAX_BINS = (2, 4, 10), 9  # of label frequencies
MAX_SIZES = 10
MIN_SHARE = 0.01  # of the documents; rarer set sizes share a group
N_BINS = 40  # of entropies
BAR = "#c9ccc8"


@dataclass(frozen=True)
class Figure:
    """A figure as SVG text."""

    name: str  # of its file: "entropy" becomes entropy.svg
    title: str
    caption: str
    svg: str


def draw_figures(study: Study) -> list[Figure]:
    """Draw all figures; those without data are left out."""
    figures = []
    for name, draw in FIGURES.items() if study.systems else ():
        with mpl.style.context(["default", STYLE]):
            picture = draw(study)
            if picture is not None:
                svg = to_svg(picture.drawing, name, picture.alt or picture.title)
                figures.append(Figure(name, picture.title, picture.caption, svg))
    return figures


def choose_focus(study: Study) -> list[str]:
    """Choose the systems drawn in colour: all of few, else the best three and the paper's pair."""
    own = study.own()
    ranked = sorted(own, key=lambda name: -study.draws.mean(own[name], "instance_f1"))
    added = [name for name, each in study.systems.items() if each.runs[0].is_added]
    return ranked if len(ranked) <= FEW else [*ranked[:3], *PAPERS_PAIR, *added]


def draw_systems(study: Study) -> Picture:
    """Draw the main scores of every system with their intervals, the best first."""
    entries = {measure: study.by_rule_for(measure) for measure in SHOWN}
    scores = {
        measure: {name: study.draws.summary(each, measure) for name, each in found.items()}
        for measure, found in entries.items()
    }
    ranked = sorted(scores["instance_f1"], key=lambda name: -scores["instance_f1"][name].mean)
    drawing, all_axes = new_axes(
        0.64 + 0.3 * len(ranked), n_columns=len(SHOWN), left=NAMES, bottom=0.3
    )
    for axes, measure in zip(all_axes, SHOWN, strict=True):
        for row, name in enumerate(ranked):
            if name in scores[measure]:
                score, colour = scores[measure][name], colour_of(name)
                axes.plot((score.low, score.high), (-row, -row), color=colour, linewidth=1.6)
                axes.plot(score.mean, -row, "o", color=colour, markersize=6)
        axes.set_title(MEASURES[measure])
        axes.margins(x=0.08)
        axes.set_xlim(axes.get_xlim())
        set_plain_ticks(axes.xaxis, most=3)
        axes.grid()
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_yticks(-np.arange(len(ranked)), [""] * len(ranked))
        axes.set_ylim(-len(ranked) + 0.4, 0.6)
    names = [clean_name(name) for name in ranked]
    all_axes[0].set_yticklabels(names)
    best = [
        f"{clean_name(max(found, key=lambda name: found[name].mean))} in {MEASURES[measure]} with "
        f"{format_score(max(each.mean for each in found.values()))}"
        for measure, found in scores.items()
        if found
    ]
    return Picture(
        "All systems",
        "Each measure by the rule made for it, in descending order of instance-F1. Dots: "
        f"{study.over_seeds}; lines: 95% intervals over documents and seeds.",
        drawing,
        f"Dots of {join_names([MEASURES[each] for each in SHOWN])} of {join_names(names)}. "
        f"Highest: {join_names(best)}.",
    )


def draw_set_size(study: Study) -> Picture:
    """Draw instance-F1 by the size of the true set."""
    of, names = group_by_size(study.comparison.truth)
    f1 = {name: each.document_f1(each.own_rule) for name, each in study.systems.items()}
    labels = ("instance-F1", "true labels per document", "documents")
    return Picture(
        "Quality by set size",
        f"Instance-F1 of the {study.n_documents:,} test documents, grouped by their number of true "
        "labels. The bars show the number of documents per group. Each system by its own rule, "
        f"{study.over_seeds}.",
        draw_by_group(study, f1, of, names, labels),
    )


def draw_rare_labels(study: Study) -> Picture:
    """Draw the paper's Figure 1: the mean F1 of labels by their training frequency."""
    of, names = group_by_frequency(study.comparison.label_counts)
    f1 = {name: each.label_f1(each.own_rule) for name, each in study.systems.items()}
    labels = ("mean F1 of labels", "training documents per label, at least", "labels")
    n_labels = study.comparison.n_labels
    absent = n_labels - len({label for row in study.comparison.truth for label in row})
    return Picture(
        "Rare labels",
        f"Mean F1 of the {n_labels:,} labels, grouped by their number of training documents. The "
        "bars show the number of labels per group. Each system by its own rule, "
        f"{study.over_seeds}."
        + (f" {absent} without a test document count as 0." if absent else ""),
        draw_by_group(study, f1, of, names, labels),
    )


def group_by_size(truth: LabelSets) -> tuple[Counts, list[str]]:
    """Group documents by their number of true labels, the few largest sets together.

    Return the least size of each document's group, (n,), and the names of the groups, (G,).
    """
    sizes = np.array([len(row) for row in truth], dtype=np.int64)
    least = min(max(2, MIN_SHARE * len(sizes)), len(sizes))
    at_least = np.cumsum(np.bincount(sizes)[::-1])[::-1]  # documents of this size or more
    largest = min(int(np.flatnonzero(at_least >= least).max()), MAX_SIZES - 1)
    grouped = np.minimum(sizes, largest)
    names = [str(size) for size in np.unique(grouped)]
    if sizes.max() > largest:
        names[-1] += "+"
    return grouped, names


def group_by_frequency(label_counts: Sequence[int]) -> tuple[Counts, list[str]]:
    """Group labels by their training frequency: 0, then from 1, 2, 4 ... or other powers on.

    Return the least frequency of each label's group, (L,), and the names of the groups, (G,).
    """
    counts = np.asarray(label_counts, dtype=np.int64)
    for base in BASES:
        edges = np.array([0, *(base**power for power in range(64 // base))])
        grouped = edges[np.searchsorted(edges, counts, side="right") - 1]
        found = np.unique(grouped)
        if len(found) <= MAX_BINS:
            break
    return grouped, [_format_short(int(edge)) for edge in found]


def _format_short(count: float) -> str:
    return f"{count:.0f}" if count < 1000 else f"{count / 1000:.0f}k"


def average_groups(values: Values, of: Counts) -> Values:
    """Average (R, L) over runs, then within each group: (G,)."""
    _, place, n = np.unique(of, return_inverse=True, return_counts=True)
    means: Values = np.bincount(place, weights=values.mean(axis=0)) / n
    return means


def draw_by_group(
    study: Study,
    values: Mapping[str, Values],
    of: Counts,
    names: Sequence[str],
    labels: tuple[str, str, str],
) -> Drawing:
    """Draw one line per system over groups, and below it bars with the sizes of the groups.

    Args:
        study: the systems.
        values: of labels or documents by system, (R, L) or (R, n).
        of: the group of each label or document.
        names: of the groups in ascending order, (G,).
        labels: what the lines show, what the groups are by, and what they hold.
    """
    drawing, (above, below) = new_axes(4.3, heights=(4, 1))
    y_label, x_label, members = labels
    x, n = np.arange(len(names), dtype=float), np.unique(of, return_counts=True)[1]
    lines = {name: Line(x, average_groups(each, of)) for name, each in values.items()}
    below.set_xlim(-0.6, len(names) - 0.4)
    focus = choose_focus(study)
    draw_lines(above, lines, focus, y_label, marker="o")
    name_lines(above, lines, focus)
    below.bar(x, n, width=0.8, color=BAR, linewidth=0)
    for place, count in zip(x, n, strict=True):
        write(below, _format_short(count), (float(place), float(count)), (0, 1.5), ha="center")
    below.set_ylim(0, 1.6 * max(n))
    below.set_yticks([])
    below.spines["left"].set_visible(False)
    below.set_xticks(x, names)
    below.set_xlabel(x_label)
    write(below, members, (1, 0), (4, 1), xycoords="axes fraction")
    return drawing


def draw_accepted(study: Study) -> Picture | None:
    """Draw the reliability of probabilities, and the accuracy by the share that is accepted."""
    lines, diagrams = {}, {}
    for name, system in study.systems.items():
        found = system.probabilities()
        if found is not None:
            runs = [accuracy_at(SHARES, *run) for run in zip(*found, strict=True)]
            lines[name] = Line(SHARES, np.mean(runs, axis=0))
            diagram = reliability(found[0].ravel(), found[1].ravel(), 10)
            diagrams[name] = Line(diagram.mean_probability, diagram.accuracy)
    if not lines:
        return None
    focus = choose_focus(study)
    drawing, (left, right) = new_axes(2.9, n_columns=2, gap=0.35)
    draw_lines(left, diagrams, focus, "share that is right", marker="o")
    left.plot((0, 1), (0, 1), color=MUTED_INK, linewidth=0.8, linestyle="--")
    left.set(xlabel="probability", xlim=(0, 1), ylim=(0, 1))
    set_plain_ticks(left.yaxis)
    left.set_xticks((0, 0.5, 1), ("0", ".5", "1"))
    draw_lines(right, lines, focus, "accepted and right")
    right.set(xlabel="share accepted", xlim=(0, 1))
    right.set_xticks((0, 0.5, 1), ("0", "50%", "100%"))
    name_lines(right, lines, focus)
    return Picture(
        "What can be accepted",
        "Left: the share of predicted sets that are exactly right, by their calibrated "
        "probability; on the dashed line, the two are equal. Right: the documents with the highest "
        "probability are accepted, and this share of them is exactly right; at 100% it is subset "
        f"accuracy. Rule set; {study.over_seeds}.",
        drawing,
    )


def accuracy_at(shares: Values, probs: Values, is_right: npt.NDArray[np.bool_]) -> Values:
    """Return the accuracy of given shares of the documents (n,), the most probable first.

    Ties in probability are broken at random.
    """
    order = np.argsort(-probs, kind="stable")
    last = np.append(np.flatnonzero(np.diff(probs[order])), len(probs) - 1)  # of those that tie
    n_right = np.cumsum(is_right[order])[last]
    right = np.interp(shares, np.append(0, last + 1) / len(probs), np.append(0, n_right))
    return np.asarray(right / (shares * len(probs)), dtype=np.float64)


def draw_entropy(study: Study) -> Picture | None:
    """Draw the paper's Figure 2: the entropy over orders, one row per system, sharpest first."""
    found = {}
    for name, system in study.systems.items():
        rows = [value for test in system.tests for value in test.order_entropy or ()]
        if known := [value for value in rows if value is not None and np.isfinite(value)]:
            found[name] = np.clip(np.array(known, dtype=np.float64), 0, 1)
    if not found:
        return None
    medians = {name: float(np.median(values)) for name, values in found.items()}
    ranked = sorted(medians, key=lambda name: (medians[name], name))
    drawing, (axes,) = new_axes(1.1 + 0.36 * len(found), left=NAMES + 0.25)
    for row, name in enumerate(ranked):
        n, edges = np.histogram(found[name], bins=N_BINS, range=(0, 1))
        heights = -row + 0.85 * n / n.max()
        axes.stairs(
            heights, edges, baseline=-row, fill=True, color=colour_of(name), alpha=0.6, lw=0
        )
        axes.plot((0, 1), (-row, -row), color=MUTED_INK, linewidth=0.5)
        axes.plot(
            medians[name], -row, "o", color=colour_of(name), markeredgecolor=PAPER, clip_on=False
        )
    texts = [f"{clean_name(name, 18)} {format_decimal(medians[name], 2)}" for name in ranked]
    axes.set_yticks(-np.arange(len(ranked)) + 0.2, texts)
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(0, 1), ylim=(-len(found) + 0.8, 1), xlabel="normalised entropy over orders")
    axes.spines["left"].set_visible(False)
    axes.set_xticks((0, 0.25, 0.5, 0.75, 1), ("0", ".25", ".5", ".75", "1"))
    write(axes, "one order", (0, 1), (0, 5), xycoords="axes fraction")
    write(axes, "all orders equal", (1, 1), (0, 5), xycoords="axes fraction", ha="right")
    return Picture(
        "How sharp the orders are",
        "Entropy over the orders of the predicted set, divided by its largest possible value: at 0 "
        "one order has all the probability, at 1 all orders have the same. Each row is the "
        "distribution over documents with two predicted labels or more, scaled to its own peak; "
        "the dot and the number are the median. For sets of more than four labels, the 24 most "
        "probable orders are used.",
        drawing,
    )


def draw_learning(study: Study) -> Picture | None:
    """Draw instance-F1 on valid by epoch."""
    lines = {}
    for name, system in study.systems.items():
        curve = average_epochs([run.epochs for run in system.runs], "instance_f1")
        if curve is not None:
            lines[name] = curve
    if not lines:
        return None
    focus = choose_focus(study)
    drawing, (axes,) = new_axes(3.4)
    draw_lines(axes, lines, focus, "instance-F1 on valid")
    axes.set_xlim(0.5, max(float(line.x.max()) for line in lines.values()) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.set_xlabel("epoch")
    name_lines(axes, lines, focus)
    return Picture(
        "Learning",
        "Instance-F1 on the valid part after each epoch, by the system's own rule, "
        f"{study.over_seeds}, for the epochs that all runs have. The table of costs has the epochs "
        "that were kept.",
        drawing,
    )


def average_epochs(runs: Sequence[Sequence[Mapping[str, Any]]], measure: str) -> Line | None:
    """Average a measure over runs, for the epochs that all of them have; None without any."""
    known = [
        {row["epoch"]: row[measure] for row in epochs if row.get(measure) is not None}
        for epochs in runs
    ]
    shared = sorted(set.intersection(*map(set, known)))
    means = [np.mean([values[epoch] for values in known]) for epoch in shared]
    return Line(np.array(shared, dtype=float), np.array(means)) if shared else None


FIGURES: dict[str, Callable[[Study], Picture | None]] = {
    "systems": draw_systems,
    "set-size": draw_set_size,
    "rare-labels": draw_rare_labels,
    "accepted": draw_accepted,
    "entropy": draw_entropy,
    "learning": draw_learning,
}


def draw_reliability(
    before: Reliability, after: Reliability, file: BinaryIO, kind: str = "svg"
) -> None:
    """Draw one model before and after calibration, above the distribution of its documents.

    The same numbers give the same bytes.

    Example:
        >>> import io, setrnn
        >>> calibrated = setrnn.calibrate(setrnn.train("newsroom", "br"), "newsroom")
        >>> file = io.BytesIO()
        >>> setrnn.draw_reliability(calibrated.before, calibrated.after, file)
        >>> b"</svg>" in file.getvalue()
        True
    """
    with mpl.rc_context({"svg.hashsalt": "setrnn", "svg.fonttype": "none", "font.size": 8}):
        figure = Drawing(figsize=(6, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(
            2, 2, sharex=True, sharey="row", gridspec_kw={"height_ratios": (4, 1)}
        )
        for (diagram, spread), (title, found) in zip(
            axes.T, (("before", before), ("after", after)), strict=True
        ):
            diagram.plot((0, 1), (0, 1), color="0.7", linewidth=0.8)
            diagram.plot(found.mean_probability, found.accuracy, "o-", markersize=3, linewidth=1)
            diagram.set_title(f"{title}: calibration error {found.error:.3f}", fontsize=8)
            diagram.set(xlim=(0, 1), ylim=(0, 1))
            width = 1 / len(found.spread)
            spread.bar(np.arange(0, 1, width), found.spread, width, align="edge", linewidth=0)
            spread.set_xlabel("probability of the predicted set")
        axes[0, 0].set_ylabel("share that is right")
        axes[1, 0].set_ylabel("documents")
        # Without the date, the file is the same in each run.
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        figure.savefig(file, format=kind, dpi=150, metadata=metadata)
