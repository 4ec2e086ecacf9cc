"""The table of labels: how well each system predicts each of the most frequent ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from setrnn.comparison.records import Comparison, Record, order_systems
from setrnn.metrics import Overlap, indicator_matrix, overlap_by_label
from setrnn.report.table import NO_CELL, Cell, Row, Table

MOST_LABELS = 50


def labels_table(comparison: Comparison, records: Sequence[Record]) -> Table:
    """List the F1 of the most frequent labels of test, by each system with its own rule."""
    by_system = {
        name: [_count(comparison, record) for record in records if record.method == name]
        for name in order_systems(records)
    }
    found = {name: [each for each in runs if each is not None] for name, runs in by_system.items()}
    found = {name: runs for name, runs in found.items() if runs}
    n_true = np.bincount(
        [label for row in comparison.truth for label in row], minlength=comparison.n_labels
    )
    frequent = np.argsort(-n_true, kind="stable")[:MOST_LABELS]
    return Table(
        name="labels",
        title="Labels",
        caption=(
            f"F1 of the {len(frequent)} most frequent labels of test, by each system's own rule; "
            "means over runs. The notes have precision and recall."
        ),
        headers=["documents", *found],
        rows=[
            Row(
                comparison.labels[label],
                [
                    Cell(f"{n_true[label]:,}", float(n_true[label])),
                    *(_make_cell(runs, int(label)) for runs in found.values()),
                ],
            )
            for label in frequent
            if n_true[label] and found
        ],
        row_header="label",
    )


def _count(comparison: Comparison, record: Record) -> Overlap | None:
    if record.test is None or record.own_rule not in record.test.predicted:
        return None
    matrices = [
        indicator_matrix([set(row) for row in rows], comparison.n_labels)
        for rows in (comparison.truth, record.test.predicted[record.own_rule])
    ]
    return overlap_by_label(*matrices)


def _make_cell(runs: Sequence[Overlap], label: int) -> Cell:
    """Return the mean F1 of a label over runs, with its precision and recall."""
    n_true = sum(int(each.n_true[label]) for each in runs)
    n_predicted = sum(int(each.n_predicted[label]) for each in runs)
    n_correct = sum(int(each.n_correct[label]) for each in runs)
    if not n_true + n_predicted:
        return NO_CELL
    f1 = float(np.mean([each.f1(empty=0.0)[label] for each in runs]))
    precision = f"{n_correct / n_predicted:.3f}" if n_predicted else "never predicted"
    note = f"precision {precision}; recall {n_correct / n_true:.3f}" if n_true else ""
    return Cell(f"{f1:.3f}".removeprefix("0"), f1, note=note)
