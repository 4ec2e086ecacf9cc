"""Quality against the speed of prediction."""

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

COARSE: dict[float, str] = {10.0**k: f"{10**k:,}" for k in range(8)}
FINE = COARSE | {n * 10.0**k: f"{n * 10**k:,}" for k in range(8) for n in (2, 5)}


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
        "Instance-F1 on test against how many documents are tagged in a second, "
        f"{systems.over_seeds}; speed is on a logarithmic axis, faster to the right. The grey band "
        "joins what is not beaten in both: nobody is both better and faster."
        + shared_machine(systems),
        f"Dots of instance-F1 against prediction speed. Not beaten in both: {listed(told)}.",
        draw_quality(points, best, "documents tagged per second", (COARSE, FINE)),
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
