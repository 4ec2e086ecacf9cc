"""The table of labels: how well each system predicts each of the most frequent ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setrnn.comparison.records import Comparison, Record, order_systems
from setrnn.metrics import Overlap, indicator_matrix, overlap_by_label
from setrnn.report.table import NO_CELL, Cell, Row, Table

MOST_LABELS = 50


def labels_table(comparison: Comparison, records: Sequence[Record]) -> Table:
    """List the F1 of the most frequent labels of test, by each system with its own rule."""
    by_system = {
        name: [_Run.of(comparison, record) for record in records if record.method == name]
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
            "means over runs. The notes have precision and recall and, for an accuracy of 0.9, the "
            "probability from which the label is accepted without review, and the share of its "
            "predictions that is."
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


@dataclass(frozen=True)
class _Run:
    """What one run gives for each label."""

    counts: Overlap
    thresholds: Sequence[float | None] | None  # None if the run does not accept labels
    n_accepted: Sequence[int] | None

    @classmethod
    def of(cls, comparison: Comparison, record: Record) -> _Run | None:
        """Count the predictions of a run; None if there are none."""
        test = record.test
        if test is None or record.own_rule not in test.predicted:
            return None
        matrices = [
            indicator_matrix([set(row) for row in rows], comparison.n_labels)
            for rows in (comparison.truth, test.predicted[record.own_rule])
        ]
        return cls(overlap_by_label(*matrices), test.label_thresholds, test.n_accepted)


def _make_cell(runs: Sequence[_Run], label: int) -> Cell:
    """Return the mean F1 of a label over runs, with its precision, recall and acceptance."""
    counts = [each.counts for each in runs]
    n_true = sum(int(each.n_true[label]) for each in counts)
    n_predicted = sum(int(each.n_predicted[label]) for each in counts)
    n_correct = sum(int(each.n_correct[label]) for each in counts)
    if not n_true + n_predicted:
        return NO_CELL
    f1 = float(np.mean([each.f1(empty=0.0)[label] for each in counts]))
    precision = f"{n_correct / n_predicted:.3f}" if n_predicted else "never predicted"
    note = f"precision {precision}; recall {n_correct / n_true:.3f}" if n_true else ""
    accepted = _describe_acceptance(runs, label, n_predicted)
    return Cell(f"{f1:.3f}".removeprefix("0"), f1, note="; ".join(filter(None, [note, accepted])))


def _describe_acceptance(runs: Sequence[_Run], label: int, n_predicted: int) -> str:
    """Say from which probability a label is accepted, and the share of its predictions."""
    thresholds, n_accepted = [], 0
    for run in runs:
        if run.thresholds is None or run.n_accepted is None:
            return ""
        if label < len(run.thresholds):  # later ones do not occur in train
            thresholds.append(run.thresholds[label])
            n_accepted += run.n_accepted[label]
    found = [each for each in thresholds if each is not None]
    if not found:
        return "never accepted"
    share = n_accepted / n_predicted if n_predicted else 0.0
    some = f" in {len(found)} of {len(runs)} runs" if len(found) < len(runs) else ""
    return f"accepted from {np.mean(found):.3f}{some}: {share:.0%}"
