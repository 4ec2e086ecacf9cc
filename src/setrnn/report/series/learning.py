"""How good networks were on the valid part, epoch by epoch."""

# R runs, E epochs

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Epochs = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class LearningCurve:
    """The mean over runs, and the epoch that was kept."""

    epochs: npt.NDArray[np.int64]  # (E,) that all runs have
    values: npt.NDArray[np.float64]  # (E,)
    best: tuple[float, float]  # the mean epoch kept, the mean of its values


def learning_curve(
    runs: Sequence[Epochs], best_epochs: Sequence[int | None], metric: str
) -> LearningCurve | None:
    """Average the epochs that all runs have; None where there are none."""
    measured, kept = [], []
    for epochs, best in zip(runs, best_epochs, strict=True):
        values = {
            int(row["epoch"]): float(row[metric]) for row in epochs if row.get(metric) is not None
        }
        if values:
            epoch = best if best in values else max(values, key=lambda each: values[each])
            measured.append(values)
            kept.append((epoch, values[epoch]))
    if not measured:
        return None
    shared = sorted(set.intersection(*(set(values) for values in measured)))
    if not shared:
        return None
    epoch, value = np.mean(kept, axis=0)
    return LearningCurve(
        epochs=np.array(shared, dtype=np.int64),
        values=np.array([np.mean([values[each] for values in measured]) for each in shared]),
        best=(float(epoch), float(value)),
    )
