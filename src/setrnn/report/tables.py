"""All tables of a report, and one table over several comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from setrnn.comparison.records import Comparison, Record, order_systems
from setrnn.comparison.statistics import Bootstrap
from setrnn.methods import METHODS
from setrnn.metrics import MEASURES
from setrnn.report.calibration_table import calibration_table
from setrnn.report.hierarchy_table import hierarchy_table
from setrnn.report.label_table import labels_table
from setrnn.report.score_tables import (
    MARKS,
    all_rules_table,
    best_rules_table,
    differences_table,
    make_rows,
    make_score_column,
    own_entries,
    rules_table,
    systems_table,
)
from setrnn.report.set_tables import set_sums_table, unseen_sets_table
from setrnn.report.table import NO_CELL, Cell, Row, Table

ADDED = ("added: predictions made elsewhere", "as they were given")
RARE = 10  # a rare label has at most so many training documents
# By header: a cost of a record, and its unit.
COSTS = {
    "training, seconds": ("training_seconds", 1),
    "training, documents/s": ("training_documents_per_second", 1),
    "prediction, documents/s": ("prediction_documents_per_second", 1),
    "run, seconds": ("total_seconds", 1),
    "memory, GB": ("peak_memory_bytes", 1e9),
    "GPU memory, GB": ("peak_gpu_bytes", 1e9),
    "parameters, millions": ("n_parameters", 1e6),
    "best epoch": ("best_epoch", 1),
    "runs at once": ("n_jobs", 1),
}


def make_tables(
    comparison: Comparison, records: Sequence[Record], bootstrap: Bootstrap
) -> list[Table]:
    """Make the tables of a comparison; empty ones are left out."""
    tables = [
        objectives_table(records),
        systems_table(records, bootstrap),
        best_rules_table(records, bootstrap),
        rules_table(records, bootstrap),
        all_rules_table(records, bootstrap),
        differences_table(records, bootstrap),
        unseen_sets_table(comparison, records),
        hierarchy_table(comparison, records),
        calibration_table(comparison, records),
        set_sums_table(comparison, records),
        labels_table(comparison, records),
        costs_table(records),
        data_table(comparison),
    ]
    return [table for table in tables if table.rows]


def joint_systems_table(
    comparisons: Sequence[tuple[Comparison, Sequence[Record], Bootstrap]],
    measures: Sequence[str] = ("instance_f1", "label_f1", "micro_f1"),
) -> Table:
    """Put the systems of several comparisons side by side, each by its own rule."""
    columns = [
        make_score_column(records, bootstrap, measure, own_entries(records, bootstrap))
        for _, records, bootstrap in comparisons
        for measure in measures
    ]
    everything = [record for _, records, _ in comparisons for record in records]
    return place_side_by_side(
        [comparison.data for comparison, _, _ in comparisons],
        [MEASURES[measure] for measure in measures],
        make_rows(everything, columns),
    )


def place_side_by_side(
    datasets: Sequence[str], headers: Sequence[str], rows: Sequence[Row]
) -> Table:
    """Make the table of the systems on several datasets; each dataset has all headers."""
    return Table(
        name="joint-systems",
        title="Systems on several datasets",
        caption=f"Each system by its own rule, as in the paper. {MARKS}",
        headers=[*headers] * len(datasets),
        rows=rows,
        groups=[(data, len(headers)) for data in datasets],
    )


def objectives_table(records: Sequence[Record]) -> Table:
    """Make the paper's Table 1."""
    words = {
        name: (METHODS[name].training, METHODS[name].prediction) if name in METHODS else ADDED
        for name in order_systems(records)
    }
    return Table(
        name="objectives",
        title="Objectives",
        caption=(
            "The objective of each system in training, summed over the documents, and its "
            "prediction by its own rule. x: a document, y: a label set, s: a sequence of labels, "
            "π(y): all orders of a set."
        ),
        headers=["training objective", "prediction objective"],
        rows=[
            Row(name, [Cell(training), Cell(prediction)])
            for name, (training, prediction) in words.items()
        ],
    )


def costs_table(records: Sequence[Record]) -> Table:
    """List the costs of each system."""
    return Table(
        name="costs",
        title="Costs",
        caption=(
            "Means over runs. Training documents count once per epoch; prediction is by the "
            "system's own rule; the time of a run includes its evaluation by all rules. Where "
            "several runs shared the machine, a single run would have been faster."
        ),
        headers=list(COSTS),
        rows=[
            Row(name, _cost_cells([record for record in records if record.method == name]))
            for name in order_systems(records)
        ],
    )


def data_table(comparison: Comparison) -> Table:
    """List the statistics of the data."""
    sizes = np.array([len(row) for row in comparison.truth], dtype=float)
    counts = np.array(comparison.label_counts)
    n_train = comparison.n_documents.get("train", 0)
    words = comparison.mean_words
    values: dict[str, float | None] = {
        **{f"{split} documents": n for split, n in comparison.n_documents.items()},
        "labels": comparison.n_labels,
        f"labels in at most {RARE} training documents": int((counts <= RARE).sum()),
        "labels per training document": counts.sum() / n_train if n_train else None,
        "labels per test document": sizes.mean() if len(sizes) else None,
        "largest set of a test document": sizes.max() if len(sizes) else None,
        "test documents without labels": int((sizes == 0).sum()),
        "test documents with an unseen set": len(comparison.unseen_sets),
        **{f"words per {split} document": words.get(split) for split in ("train", "test")},
    }
    remarks = ["Statistics of the data."]
    if comparison.unseen_sets:
        remarks.append("An unseen set is the label set of no training document.")
    if words:
        remarks.append("Words are those that are read: after the filters and up to the limit.")
    if comparison.valid_is_cut:
        remarks.append("The valid part was cut from the training part.")
    if comparison.synthetic:
        remarks.append("The data is synthetic.")
    return Table(
        name="data",
        title="Data",
        caption=" ".join(remarks),
        headers=list(values),
        rows=[Row(comparison.data, [_make_number_cell(value) for value in values.values()])],
        row_header="data",
    )


def _cost_cells(runs: Sequence[Record]) -> list[Cell]:
    failures = [record.failure for record in runs if record.failure is not None]
    if len(failures) == len(runs):
        note = f"{failures[0].kind}: {failures[0].message}"
        return [Cell("failed", note=note), *[NO_CELL] * (len(COSTS) - 1)]
    cells = []
    done = [record for record in runs if record.failure is None]
    for name, unit in COSTS.values():
        of = [record if name == "best_epoch" else record.costs for record in done]
        known = [getattr(each, name, None) for each in of]
        values = [value / unit for value in known if value is not None]
        if not values:
            cells.append(NO_CELL)
            continue
        low, high = _format_number(min(values)), _format_number(max(values))
        mean = float(np.mean(values))
        std = float(np.std(values, ddof=1)) if len(values) > 1 else None
        note = "" if low == high else f"{low} to {high}"
        cells.append(Cell(_format_number(mean), mean, note=note, more={"std": std}))
    return cells


def _make_number_cell(value: float | None) -> Cell:
    return NO_CELL if value is None else Cell(_format_number(value), float(value))


def _format_number(value: float) -> str:
    """Write a number with about three digits: 0.06, 1.25, 18.2, 4,118."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
