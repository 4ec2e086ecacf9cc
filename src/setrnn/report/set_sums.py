"""What searches find of the probability of true sets, by system, width and set size."""

# n documents of one size, R runs

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import Comparison, Record, SetSums, order_systems

N_DRAWS = 2000  # of the documents of a size, for the interval

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SumsOfSize:
    """The sums of one system by a search of one width, over true sets of one size."""

    system: str
    width: int
    size: int
    n_documents: int
    missed: float  # the mean share of p(true set) that the search does not find
    low: float  # the 95% interval over documents
    high: float
    log_prob: float  # mean log p(true set) by the search
    exact_log_prob: float


def list_set_sums(comparison: Comparison, records: Sequence[Record]) -> list[SumsOfSize]:
    """Average the sums over the runs of a system, then over the documents of each size."""
    listed = []
    for system in order_systems(records):
        runs = [
            record.test.set_sums
            for record in records
            if record.method == system and record.test is not None and record.test.set_sums
        ]
        if runs:
            listed += _average(system, comparison, runs)
    return listed


def _average(system: str, comparison: Comparison, runs: Sequence[SetSums]) -> list[SumsOfSize]:
    first = runs[0]
    runs = [each for each in runs if list(each.documents) == list(first.documents)]
    sizes = np.array([len(comparison.truth[row]) for row in first.documents])
    exact = np.array([each.exact for each in runs])  # (R, n)
    listed = []
    for place, width in enumerate(first.widths):
        found = np.array([each.found[place] for each in runs])
        # A search that finds all orders may differ from the exact sum by rounding.
        missed = (1 - np.exp(np.minimum(found - exact, 0))).mean(axis=0)
        for size in np.unique(sizes):
            rows = sizes == size
            low, high = _interval(missed[rows])
            listed.append(
                SumsOfSize(
                    system,
                    int(width),
                    int(size),
                    int(rows.sum()),
                    float(missed[rows].mean()),
                    low,
                    high,
                    float(found[:, rows].mean()),
                    float(exact[:, rows].mean()),
                )
            )
    return listed


def _interval(values: Values) -> tuple[float, float]:
    random = np.random.default_rng(0)
    drawn = values[random.integers(len(values), size=(N_DRAWS, len(values)))].mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
