"""Tables without statistics: what each system maximises, what it took, what the data is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from setrnn.comparison.records import Comparison, Record
from setrnn.methods import METHODS
from setrnn.report.parts import Cell, Row, Table
from setrnn.report.score_tables import NOTHING, ordered_systems

ADDED = ("added: predictions from elsewhere", "as they were given")
RARE = 10  # training documents of a rare label, at most
_UNIT = {"G": 1e9, "M": 1e6}


def objectives_table(records: Sequence[Record]) -> Table:
    """Make the paper's Table 1."""
    known = {name: (each.training, each.prediction) for name, each in METHODS.items()}
    words = {name: known.get(name, ADDED) for name in ordered_systems(records)}
    return Table(
        name="objectives",
        title="Objectives",
        caption=(
            "What each system maximises in training, and how it predicts by its own rule. x: a "
            "document, y: a label set, s: a sequence of labels, π(y): all orders of a set."
        ),
        headers=["training objective", "prediction objective"],
        rows=[
            Row(name, [Cell(training), Cell(prediction)])
            for name, (training, prediction) in words.items()
        ],
    )


def costs_table(records: Sequence[Record]) -> Table:
    """Tell what each system took."""
    columns: dict[str, Callable[[Record], float | None]] = {
        "training, seconds": _cost("training_seconds"),
        "training, documents/s": _cost("training_documents_per_second"),
        "prediction, documents/s": _cost("prediction_documents_per_second"),
        "run, seconds": _cost("total_seconds"),
        "memory, GB": _cost("peak_memory_bytes", "G"),
        "GPU memory, GB": _cost("peak_gpu_bytes", "G"),
        "parameters, millions": _cost("n_parameters", "M"),
        "best epoch": lambda record: record.best_epoch,
        "runs at a time": _cost("n_jobs"),
    }
    return Table(
        name="costs",
        title="What it took",
        caption=(
            "Means over runs. Training documents count each time they are read; prediction is by "
            "the system's own rule; a run measures by all rules too. Where several runs shared the "
            "machine, one alone would have been faster."
        ),
        headers=list(columns),
        rows=[
            Row(name, _cost_cells([record for record in records if record.method == name], columns))
            for name in ordered_systems(records)
        ],
    )


def data_table(comparison: Comparison) -> Table:
    """Tell what the data is."""
    sizes = np.array([len(row) for row in comparison.truth], dtype=float)
    counts = np.array(comparison.label_counts)
    n_train = comparison.n_documents.get("train", 0)
    values: dict[str, float | None] = {
        **{f"{split} documents": n for split, n in comparison.n_documents.items()},
        "labels": comparison.n_labels,
        f"of them in at most {RARE} training documents": int((counts <= RARE).sum()),
        "labels a training document": counts.sum() / n_train if n_train else None,
        "labels a test document": sizes.mean() if len(sizes) else None,
        "most labels of a test document": sizes.max() if len(sizes) else None,
        "test documents without labels": int((sizes == 0).sum()),
    }
    remarks = ["Statistics of the data."]
    if comparison.valid_is_cut:
        remarks.append("It had no valid part: one was cut from train.")
    if comparison.synthetic:
        remarks.append("It is synthetic.")
    return Table(
        name="data",
        title="Data",
        caption=" ".join(remarks),
        headers=list(values),
        rows=[Row(comparison.data, [_number_cell(value) for value in values.values()])],
        row_header="data",
    )


def _cost(name: str, unit: str = "") -> Callable[[Record], float | None]:
    def read(record: Record) -> float | None:
        value = None if record.costs is None else getattr(record.costs, name)
        return None if value is None else value / _UNIT.get(unit, 1)

    return read


def _cost_cells(
    runs: Sequence[Record], columns: dict[str, Callable[[Record], float | None]]
) -> list[Cell]:
    if all(record.failure is not None for record in runs):
        failure = runs[0].failure
        note = "" if failure is None else f"{failure.kind}: {failure.message}"
        return [Cell("failed", note=note), *[NOTHING] * (len(columns) - 1)]
    done = [record for record in runs if record.failure is None]
    cells = []
    for read in columns.values():
        values = [value for value in map(read, done) if value is not None]
        if not values:
            cells.append(NOTHING)
            continue
        low, high = min(values), max(values)
        note = f"{_number(low)} to {_number(high)}" if _number(low) != _number(high) else ""
        mean = float(np.mean(values))
        std = float(np.std(values, ddof=1)) if len(values) > 1 else None
        cells.append(Cell(_number(mean), mean, note=note, more={"std": std}))
    return cells


def _number_cell(value: float | None) -> Cell:
    return NOTHING if value is None else Cell(_number(value), float(value))


def _number(value: float) -> str:
    """Write a number in three digits or more: 0.06, 1.25, 18.2, 4,118."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
