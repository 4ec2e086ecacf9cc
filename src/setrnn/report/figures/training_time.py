"""Quality against the time training took."""

from __future__ import annotations

import numpy as np

from setrnn.report.figures.quality_against import (
    draw_quality,
    points_of,
    shared_machine,
    unbeaten,
)
from setrnn.report.figures.style import Picture
from setrnn.report.figures.words import listed, share
from setrnn.report.series.systems import System, Systems

COARSE: dict[float, str] = {
    0.01: "10 ms", 0.1: ".1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min",
    3600: "1 h", 36_000: "10 h", 360_000: "100 h",
}  # fmt: skip
MEDIUM = COARSE | {
    5: "5 s", 30: "30 s", 300: "5 min", 1800: "30 min", 18_000: "5 h",
}  # fmt: skip
FINE = MEDIUM | {2: "2 s", 120: "2 min", 7200: "2 h"}


def training_time(systems: Systems) -> Picture | None:
    """Draw instance-F1 against the mean time of training."""
    points = points_of(systems, _seconds)
    if not points:
        return None
    best = unbeaten(points, less_is_better=True)
    told = [
        f"{point.system} by rule {point.rule} ({share(point.quality)}, {seconds(point.cost)})"
        for point in best
    ]
    return Picture(
        "Quality against training time",
        f"Instance-F1 on test against the time that training took, {systems.over_seeds}; time is "
        "on a logarithmic axis. The grey band joins what is not beaten in both: nobody is both "
        f"better and faster.{shared_machine(systems)}",
        f"Dots of instance-F1 against training time. Not beaten in both: {listed(told)}.",
        draw_quality(points, best, "training time", (COARSE, MEDIUM, FINE)),
    )


def seconds(value: float) -> str:
    """Write a time as people do."""
    if value < 100:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 6000 else f"{value / 3600:.1f} h"


def _seconds(system: System, rule: str) -> float | None:
    times = [run.costs.training_seconds for run in system.runs if run.costs]
    return float(np.mean(times)) if times else None
