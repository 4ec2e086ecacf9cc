"""The table of calibration: whether probabilities of sets and labels can be trusted."""

# n documents, R runs, D draws, A target accuracies

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import Comparison, Record, order_systems
from setrnn.report.score_tables import make_mean_cell
from setrnn.report.systems import System, group_by_system
from setrnn.report.table import NO_CELL, Cell, Row, Table
from setrnn.report.wording import format_decimal
from setrnn.tagging.trust.acceptance import fit_acceptance

Values = npt.NDArray[np.float64]

TARGETS = (0.8, 0.9, 0.95)  # the least accuracy of accepted predictions
CONFIDENCE = 0.95
N_DRAWS = 400  # of the documents and runs, for the intervals of accepted shares
# By header: the calibration errors in the scores of a record.
ERRORS = {
    "sets: error before": "calibration_error_raw",
    "sets: error after": "calibration_error",
    "labels: error before": "label_calibration_error_raw",
    "labels: error after": "label_calibration_error",
}


def calibration_table(comparison: Comparison, records: Sequence[Record]) -> Table:
    """List how far probabilities of sets and of labels can be trusted, and what is accepted."""
    weights = _draw_documents(len(comparison.truth))
    systems = {each.name: each for each in group_by_system(comparison, records).all}
    rows = []
    for name in order_systems(records):
        if name not in systems:
            continue
        scores = [each.scores.get("test", {}).get(each.own_rule, {}) for each in systems[name].runs]
        cells = [
            *(make_mean_cell([each.get(key) for each in scores]) for key in ERRORS.values()),
            *_make_accepted_cells(systems[name], weights),
        ]
        if any(cell.text for cell in cells):
            rows.append(Row(name, cells))
    return Table(
        name="calibration",
        title="Calibration and acceptance",
        caption=(
            "The expected calibration error of the probabilities of whole sets and of labels (of "
            "those with more than 5%), before and after the calibration on valid; smaller is "
            "better. Accepted: the largest share of the documents, the most probable first, of "
            "which the given share is exactly right. The CSV file, and the page below each share, "
            "have its 95% interval over documents and seeds, and the share for which this is sure "
            f"with {CONFIDENCE:.0%} confidence. The threshold is chosen on the same test "
            "documents. Each system by its own rule. Mean over seeds ± standard deviation."
        ),
        headers=[*ERRORS, *(f"accepted at {format_decimal(each, 2)}" for each in TARGETS)],
        rows=rows,
    )


def find_largest_shares(probs: Values, is_right: npt.NDArray[np.bool_], weights: Values) -> Values:
    """Find the largest share of documents that reaches each target accuracy, (D, A).

    Documents (n,) are taken in descending order of probability, those of equal probability
    together; `weights` (D, n) counts how often each is drawn.
    """
    order = np.argsort(-probs, kind="stable")
    is_last = np.append(np.diff(probs[order]) != 0, True)  # of those of equal probability
    drawn = weights[:, order]
    n_taken = np.cumsum(drawn, axis=1)
    n_right = np.cumsum(drawn * is_right[order], axis=1)[:, is_last]
    n_taken = n_taken[:, is_last]
    shares = [
        np.where(n_right >= target * n_taken, n_taken, 0).max(axis=1) / weights.shape[1]
        for target in TARGETS
    ]
    return np.stack(shares, axis=1)


def _draw_documents(n: int) -> Values:
    """Return how often each document is in each draw, (D, n)."""
    random = np.random.default_rng(0)
    return random.multinomial(n, np.full(n, 1 / max(n, 1)), size=N_DRAWS).astype(np.float64)


def _make_accepted_cells(system: System, weights: Values) -> list[Cell]:
    """Write the accepted share at each target, with its interval."""
    rule, everyone = system.own_rule, np.ones((1, weights.shape[1]))
    known = [test.probability.get(rule, ()) for test in system.tests]
    if not weights.shape[1] or any(len(row) != weights.shape[1] for row in known):
        return [NO_CELL] * len(TARGETS)
    runs = list(zip(np.array(known, dtype=np.float64), system.is_right(rule), strict=True))
    shares = np.stack([find_largest_shares(*run, everyone)[0] for run in runs])  # (R, A)
    drawn = np.stack([find_largest_shares(*run, weights) for run in runs], axis=1)  # (D, R, A)
    cells = []
    for place, target in enumerate(TARGETS):
        means = _average_drawn_runs(drawn[:, :, place])
        low, high = (float(each) for each in np.percentile(means, [2.5, 97.5]))
        accepted = [fit_acceptance(rule, *run, target, CONFIDENCE) for run in runs]
        sure = np.mean([each.share for each in accepted])
        mean = float(shares[:, place].mean())
        std = float(np.std(shares[:, place], ddof=1)) if len(runs) > 1 else None
        cells.append(
            Cell(
                f"{mean:.1%}",
                mean,
                note=f"95% {100 * low:.1f} to {high:.1%}; sure: {sure:.1%}",
                more={"std": std, "low": low, "high": high, "sure": float(sure)},
            )
        )
    return cells


def _average_drawn_runs(values: Values) -> Values:
    """Average values (D, R) over the runs that each draw takes: one fewer than there are."""
    n_draws, n_runs = values.shape
    n_taken = max(1, n_runs - 1)
    random = np.random.default_rng(1)
    taken = random.multinomial(n_taken, np.full(n_runs, 1 / n_runs), size=n_draws)
    means: Values = (values * taken).sum(axis=1) / n_taken
    return means
