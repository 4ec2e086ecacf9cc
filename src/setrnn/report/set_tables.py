"""Tables of what only sets can show: unseen sets, and what a search misses of a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from setrnn.comparison.records import Comparison, LabelSets, Record
from setrnn.comparison.statistics import bootstrap
from setrnn.report.score_tables import MARKS, make_rows, make_score_column, own_entries
from setrnn.report.set_sums import SumsOfSize, list_set_sums
from setrnn.report.table import NO_CELL, Cell, Row, Table
from setrnn.report.wording import format_decimal

# By header: a measure of the documents of a group.
ON_UNSEEN = {"recall": "subset_accuracy", "F1": "instance_f1"}


def unseen_sets_table(comparison: Comparison, records: Sequence[Record]) -> Table:
    """Score each system on the test sets that train does not have, and on the others."""
    unseen = set(comparison.unseen_sets)
    groups = {
        "unseen": [row for row in range(len(comparison.truth)) if row in unseen],
        "seen": [row for row in range(len(comparison.truth)) if row not in unseen],
    }
    columns = {}
    for name, rows in groups.items():
        if unseen and rows:
            draws = bootstrap(*restrict(comparison, records, rows))
            entries = own_entries(records, draws)
            for header, measure in ON_UNSEEN.items():
                columns[f"{name}: {header}"] = make_score_column(records, draws, measure, entries)
    n, total = len(unseen), max(len(comparison.truth), 1)
    return Table(
        name="unseen-sets",
        title="Label sets that train does not have",
        caption=(
            f"{n:,} of the {total:,} test documents ({n / total:.1%}) have a label set that no "
            "training document has (unseen); the others are seen. Recall: the share of these sets "
            "that is predicted exactly. F1: the mean over these documents. Each system by its own "
            f"rule. {MARKS}"
        ),
        headers=list(columns),
        rows=make_rows(records, list(columns.values())) if columns else [],
    )


def restrict(
    comparison: Comparison, records: Sequence[Record], rows: Sequence[int]
) -> tuple[Comparison, list[Record]]:
    """Keep some test documents, and the predictions by each system's own rule."""

    def keep(sets: LabelSets) -> LabelSets:
        return [sets[row] for row in rows]

    ids = tuple(comparison.ids[row] for row in rows)
    kept = replace(comparison, ids=ids, truth=keep(comparison.truth))
    return kept, [record.with_own_sets(keep) for record in records]


def set_sums_table(comparison: Comparison, records: Sequence[Record]) -> Table:
    """List how much of the probability of a true set a search of width K misses, by set size."""
    found = list_set_sums(comparison, records)
    sizes = sorted({each.size for each in found})
    by_place = {(each.system, each.width, each.size): each for each in found}
    rows = [
        Row(
            system,
            [
                Cell(str(width), float(width)),
                *(_make_sum_cell(by_place.get((system, width, size))) for size in sizes),
            ],
        )
        for system, width in dict.fromkeys((each.system, each.width) for each in found)
    ]
    counts = {each.size: each.n_documents for each in found}
    documents = ", ".join(f"{n} of {size} labels" for size, n in sorted(counts.items()))
    return Table(
        name="set-sums",
        title="What a search of K orders misses of a set",
        caption=(
            "The share of the exact p(true set), the sum over all orders of the set, that the K "
            "orders found by a search miss; mean over documents and seeds. The CSV file, "
            "and the page below each share, have its 95% interval over documents and the mean log "
            "p(true set) by the search → by all orders. "
            f"Documents, spread evenly over test: {documents}."
        ),
        headers=["K", *(f"{size} labels" for size in sizes)],
        rows=rows,
    )


def _make_sum_cell(found: SumsOfSize | None) -> Cell:
    if found is None:
        return NO_CELL
    by_search, exact = format_decimal(found.log_prob), format_decimal(found.exact_log_prob)
    return Cell(
        f"{found.missed:.1%}",
        found.missed,
        note=f"95% {100 * found.low:.1f} to {found.high:.1%}; {by_search} → {exact}",
        more={
            "low": found.low,
            "high": found.high,
            "log p by search": found.log_prob,
            "log p exact": found.exact_log_prob,
        },
    )
