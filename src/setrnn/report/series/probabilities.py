"""The probabilities of predicted sets, and which sets are exactly right."""

# R runs, n documents

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setrnn.report.series.systems import System

RULE = "set"


def probabilities(
    system: System, is_raw: bool = False
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]] | None:
    """Return both by run, (R, n), of rule set, or of the one rule there is; None where unknown."""
    rule = RULE if system.has(RULE) else system.own_rule
    rows: list[Sequence[float]] = []
    for test in system.tests:
        row = (test.raw_probability if is_raw else test.probability).get(rule)
        if row is None or len(row) != system.truth.shape[0]:
            return None
        rows.append(row)
    probs = np.array(rows, dtype=np.float64)  # None becomes NaN
    return (probs, system.is_right(rule)) if np.isfinite(probs).all() else None
