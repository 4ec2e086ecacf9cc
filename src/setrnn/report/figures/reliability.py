"""Figures of whether probabilities can be trusted."""

# n documents

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing

from setrnn.report.figures.style import (
    FAINT,
    MUTED_INK,
    WHOLE,
    WIDTH,
    Picture,
    add_axes,
    clean_name,
    colour_of,
    new_drawing,
    text_colour,
    write,
)
from setrnn.report.systems import System, Systems
from setrnn.report.wording import format_score, join_names
from setrnn.tagging.trust.acceptance import Reliability
from setrnn.tagging.trust.acceptance import reliability as measure_reliability

Values = npt.NDArray[np.float64]
_Measured = tuple[Reliability, float]  # a diagram, and its calibration error

N_COLUMNS, N_BINS = 3, 10


def draw_reliability_diagrams(systems: Systems) -> Picture | None:
    """Draw one small reliability diagram per system."""
    found = {}
    for system in systems.all:
        after = _measure_runs(system, is_raw=False)
        if after is not None:
            found[system.name] = (_measure_runs(system, is_raw=True), after)
    if not found:
        return None
    errors = [
        f"{name} "
        + (f"{format_score(before[1])} before and " if before else "")
        + f"{format_score(after[1])} after"
        for name, (before, after) in found.items()
    ]
    return Picture(
        "Can probabilities be trusted?",
        "The share of predicted sets (rule set) that are exactly right, by their probability. On "
        "the diagonal, the two are equal. Grey: the probability of the model; in colour: "
        "calibrated on the valid part. The numbers are the expected calibration errors, before → "
        f"after, {systems.over_seeds}. Each point stands for an equal share of the "
        f"{systems.n_documents:,} test documents.",
        f"Reliability diagrams. Calibration errors: {join_names(errors)}.",
        _draw_grid(found),
    )


def _measure_runs(system: System, is_raw: bool) -> _Measured | None:
    """Return the diagram of all runs together, and the mean of their errors."""
    found = system.probabilities(is_raw)
    if found is None:
        return None
    probs, is_right = found
    errors = [measure_reliability(*run).error for run in zip(probs, is_right, strict=True)]
    diagram = measure_reliability(probs.ravel(), is_right.ravel(), N_BINS)
    return diagram, float(np.mean(errors))


def _draw_grid(found: Mapping[str, tuple[_Measured | None, _Measured]]) -> Drawing:
    n_columns = min(N_COLUMNS, max(len(found), 2))
    n_rows = -(-len(found) // n_columns)
    side = (72 * WIDTH - 34 - 8 - 12 * (n_columns - 1)) / n_columns
    head = 30  # points above each diagram, for its name and its errors
    height = 44 + n_rows * (side + head)
    drawing = new_drawing(height / 72)
    for place, (name, (before, after)) in enumerate(found.items()):
        row, column = divmod(place, n_columns)
        left, top = 34 + column * (side + 12), row * (side + head) + head
        axes = add_axes(drawing, left, height - top - side, 72 * WIDTH - left - side, top)
        _draw_one(axes, name, before, after)
        is_lowest = place + n_columns >= len(found)
        axes.set_xticks((0, 0.5, 1), ("0", ".5", "1") if is_lowest else ("", "", ""))
        axes.set_yticks((0, 0.5, 1), ("0", ".5", "1") if column == 0 else ("", "", ""))
    middle = 34 + (72 * WIDTH - 42) / 2
    drawing.text(middle / (72 * WIDTH), 8 / height, "probability of the predicted set", ha="center")
    at = 4 / (72 * WIDTH), (44 + n_rows * (side + head) / 2) / height
    drawing.text(*at, "share that is right", rotation=90, va="center")
    return drawing


def _draw_one(axes: Axes, name: str, before: _Measured | None, after: _Measured) -> None:
    """Draw the diagram of one system, with its name and its errors above."""
    axes.plot((0, 1), (0, 1), color=FAINT, linewidth=0.8)
    if before is not None:
        _draw_line(axes, before[0], MUTED_INK, 0.9)
    _draw_line(axes, after[0], colour_of(name), 1.8)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    write(axes, clean_name(name, 20), (0, 1), (0, 14), of=WHOLE, color=text_colour(colour_of(name)))
    errors = " → ".join(format_score(each[1]) for each in (before, after) if each)
    write(axes, errors, (0, 1), (0, 4), of=WHOLE)


def _draw_line(axes: Axes, diagram: Reliability, colour: str, width: float) -> None:
    x, y = diagram.mean_probability, diagram.accuracy
    size = 1.8 * width**0.5
    axes.plot(x, y, "o-", color=colour, linewidth=width, markersize=size, markeredgewidth=0)


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
