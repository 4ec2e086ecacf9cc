"""Quality against the speed of prediction."""

from __future__ import annotations

import numpy as np

from setrnn.report.figures.quality_against import (
    draw_quality,
    points_of,
    shared_machine,
    unbeaten,
)
from setrnn.report.figures.style import Picture, listed, share
from setrnn.report.series.systems import System, Systems

TICKS: dict[float, str] = {
    1: "1/s", 10: "10/s", 100: "100/s", 1000: "1,000/s", 10_000: "10,000/s", 100_000: "100,000/s",
    1_000_000: "10⁶/s",
}  # fmt: skip


def prediction_speed(systems: Systems) -> Picture | None:
    """Draw instance-F1 against documents per second."""
    points = points_of(systems, _speed)
    if not points:
        return None
    best = unbeaten(points, less_is_better=False)
    told = [
        f"{point.system} by rule {point.rule} ({share(point.quality)}, {point.cost:,.0f}/s)"
        for point in best
    ]
    return Picture(
        "Quality against prediction speed",
        "Instance-F1 on test against how many documents are tagged in a second, mean over seeds; "
        "speed is on a logarithmic axis, faster to the right. The grey band joins what is not "
        f"beaten in both: nobody is better and faster.{shared_machine(systems)}",
        f"Dots of instance-F1 against prediction speed. Not beaten in both: {listed(told)}.",
        draw_quality(points, best, "documents tagged per second", TICKS),
    )


def _speed(system: System, rule: str) -> float | None:
    """Return the mean speed by this rule; None where it was not measured."""
    speeds = []
    for run in system.runs:
        measured = run.scores.get("test", {}).get(rule, {}).get("documents_per_second")
        if rule == system.own_rule and run.costs:
            speeds.append(run.costs.prediction_documents_per_second)
        elif measured:
            speeds.append(float(measured))
    return float(np.mean(speeds)) if speeds else None
