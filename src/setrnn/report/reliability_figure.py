"""A figure of how often sets are right by their probability, before and after calibration."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from setrnn.tagging.acceptance import Reliability


def draw_reliability(
    before: Reliability, after: Reliability, file: BinaryIO, kind: str = "svg"
) -> None:
    """Draw both diagrams over how documents spread; the same bytes for the same numbers."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "setrnn", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
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
        axes[0, 0].set_ylabel("how often it is right")
        axes[1, 0].set_ylabel("documents")
        # No date: the file must not change from run to run.
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        figure.savefig(file, format=kind, dpi=150, metadata=metadata)
