"""Table of the hierarchical measures: sets with the labels above theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from setrnn.comparison.records import Comparison, LabelSets, Record, order_systems
from setrnn.comparison.statistics import bootstrap
from setrnn.data.hierarchy import HIERARCHICAL_MEASURES, Hierarchy
from setrnn.report.score_tables import MARKS, make_rows, make_score_column, own_entries
from setrnn.report.table import Cell, Table
from setrnn.report.wording import format_score

# Of sets with the labels above theirs, these are the measures with intervals and p.
BY_CLOSED_SETS = {"hierarchical_f1": "micro_f1", "hierarchical_instance_f1": "instance_f1"}


def hierarchy_table(comparison: Comparison, records: Sequence[Record]) -> Table:
    """Score each system by its own rule, all sets with the labels above theirs."""
    columns: dict[str, dict[str, Cell]] = {}
    if comparison.parents is not None:
        closed = close_sets(comparison, records, Hierarchy(comparison.parents))
        draws = bootstrap(*closed)
        entries = own_entries(records, draws)
        for measure, shown in HIERARCHICAL_MEASURES.items():
            columns[shown] = (
                make_score_column(records, draws, BY_CLOSED_SETS[measure], entries)
                if measure in BY_CLOSED_SETS
                else _make_mean_column(records, measure)
            )
    return Table(
        name="hierarchy",
        title="In the hierarchy of the labels",
        caption=(
            "True and predicted sets with all labels above theirs in the hierarchy (Kiritchenko et "
            "al. 2006): precision, recall and F1 over all labels of all documents, and the mean F1 "
            f"of documents. Each system by its own rule. {MARKS}"
        ),
        headers=list(columns),
        rows=make_rows(records, list(columns.values())) if columns else [],
    )


def close_sets(
    comparison: Comparison, records: Sequence[Record], hierarchy: Hierarchy
) -> tuple[Comparison, list[Record]]:
    """Add to true and predicted sets the labels above theirs; predictions are by own rule."""
    names = tuple(dict.fromkeys([*comparison.labels, *hierarchy.labels]))
    index = {name: number for number, name in enumerate(names)}
    brought = [[index[each] for each in (name, *hierarchy.ancestors(name))] for name in names]

    def close(sets: LabelSets) -> LabelSets:
        return [sorted({each for label in row for each in brought[label]}) for row in sets]

    counts = (*comparison.label_counts, *[0] * (len(names) - len(comparison.labels)))
    closed = replace(comparison, labels=names, label_counts=counts, truth=close(comparison.truth))
    return closed, [record.with_own_sets(close) for record in records]


def _make_mean_column(records: Sequence[Record], measure: str) -> dict[str, Cell]:
    """Return the mean over seeds of a measure of the records, by system."""
    cells = {}
    for name in order_systems(records):
        own = [each for each in records if each.method == name and each.test is not None]
        values = [each.scores["test"][each.own_rule].get(measure) for each in own]
        known = [float(each) for each in values if each is not None]
        if known:
            mean = float(np.mean(known))
            cells[name] = Cell(format_score(mean), mean)
    return cells
