"""All tables of a report, and one over several datasets."""

from __future__ import annotations

from collections.abc import Sequence

from setrnn.comparison.records import Comparison, Record
from setrnn.comparison.statistics import MEASURES, Bootstrap
from setrnn.report.fact_tables import costs_table, data_table, objectives_table
from setrnn.report.parts import Table
from setrnn.report.score_tables import (
    MARKS,
    all_rules_table,
    best_rules_table,
    differences_table,
    own_entries,
    rows_of,
    rules_table,
    score_column,
    systems_table,
)


def make_tables(
    comparison: Comparison, records: Sequence[Record], bootstrap: Bootstrap
) -> list[Table]:
    """Make the tables of a comparison; those with nothing to show are left out."""
    tables = [
        objectives_table(records),
        systems_table(records, bootstrap),
        best_rules_table(records, bootstrap),
        rules_table(records, bootstrap),
        all_rules_table(records, bootstrap),
        differences_table(records, bootstrap),
        costs_table(records),
        data_table(comparison),
    ]
    return [table for table in tables if table.rows]


def joint_systems_table(
    comparisons: Sequence[tuple[Comparison, Sequence[Record], Bootstrap]],
    measures: Sequence[str] = ("instance_f1", "label_f1", "micro_f1"),
) -> Table:
    """Set the systems of several comparisons side by side, each by its own rule."""
    columns = [
        score_column(records, bootstrap, measure, own_entries(records, bootstrap))
        for _, records, bootstrap in comparisons
        for measure in measures
    ]
    everything = [record for _, records, _ in comparisons for record in records]
    return Table(
        name="joint-systems",
        title="Systems on several datasets",
        caption=f"Each system by its own rule, as in the paper. {MARKS}",
        headers=[MEASURES[measure] for measure in measures] * len(comparisons),
        rows=rows_of(everything, columns),
        groups=[(comparison.data, len(measures)) for comparison, _, _ in comparisons],
    )
