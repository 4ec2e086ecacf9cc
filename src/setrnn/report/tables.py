"""The other tables: what was compared, on which data, at which cost, and what can be trusted."""

# R runs, n documents, L labels

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from setrnn.methods import METHODS
from setrnn.metrics import MEASURES
from setrnn.report.scores import (
    MARKS,
    NAME,
    differences_table,
    hierarchy_table,
    rules_table,
    score_column,
    systems_table,
    unseen_sets_table,
)
from setrnn.report.study import Study
from setrnn.report.table import Column, Estimate, Table, Value
from setrnn.report.wording import format_decimal, format_probability
from setrnn.systems.rules import rule_for
from setrnn.tagging.trust.acceptance import fit_acceptance

Found = Mapping[str, Any]  # a document of a record, or one of its sequences

MAIN = "best-rules"
MAX_LABELS = 50
RARE = 10  # a rare label has at most so many training documents
TARGETS, CONFIDENCE = (0.8, 0.9, 0.95), 0.95
ADDED = ("added: predictions made elsewhere", "as they were given")
# By header: a cost of a record, its unit, and which costs are better.
COSTS = {
    "training, seconds": ("training_seconds", 1, "lower"),
    "training, documents/s": ("training_documents_per_second", 1, "higher"),
    "prediction, documents/s": ("prediction_documents_per_second", 1, "higher"),
    "run, seconds": ("total_seconds", 1, "lower"),
    "memory, GB": ("peak_memory_bytes", 1e9, "lower"),
    "GPU memory, GB": ("peak_gpu_bytes", 1e9, "lower"),
    "parameters, millions": ("n_parameters", 1e6, "lower"),
    "best epoch": ("best_epoch", 1, ""),
    "runs at once": ("n_jobs", 1, ""),
}
SHOWN_COSTS = ("training, seconds", "prediction, documents/s")  # in the main table
# By header: the calibration errors in the scores of a record.
ERRORS = {
    "sets: error before": "calibration_error_raw",
    "sets: error after": "calibration_error",
    "labels: error before": "label_calibration_error_raw",
    "labels: error after": "label_calibration_error",
}


def make_tables(study: Study) -> list[Table]:
    """Make the tables of a comparison; empty ones are left out."""
    tables = [make(study) for make in TABLES]
    return [table for table in tables if table.rows]


def main_table(study: Study) -> Table:
    """Make the table to choose a system by: each measure by the rule made for it, and costs."""
    costs = [column for column in cost_columns(study) if column.header in SHOWN_COSTS]
    *scores, hamming = (
        score_column(
            study, measure, study.by_rule_for(measure), f"{shown} (rule {rule_for(measure)})"
        )
        for measure, shown in MEASURES.items()
    )
    return Table(
        name=MAIN,
        title="The systems",
        caption=(
            "One trained model per run, which predicts by the rule for the measure of the "
            f"column; added predictions are used as they are. {MARKS} Training times of mixtures "
            "are without those of their members."
        ),
        columns=[NAME, *scores, *costs, hamming],
        rows=study.names,
    )


def objectives_table(names: Sequence[str]) -> Table:
    """Make the paper's Table 1."""
    words = {
        name: (METHODS[name].training, METHODS[name].prediction) if name in METHODS else ADDED
        for name in names
    }
    return Table(
        name="objectives",
        title="Table 1: objectives",
        caption=(
            "The objective of each system in training, summed over the documents, and its "
            "prediction by its own rule. x: a document, y: a label set, s: a sequence of labels, "
            "π(y): all orders of a set."
        ),
        columns=[
            NAME,
            Column("training objective", lambda name: words[name][0]),
            Column("prediction objective", lambda name: words[name][1]),
        ],
        rows=list(names),
    )


def cost_columns(study: Study) -> list[Column]:
    """Describe each cost: its mean over runs."""

    def getter(cost: str, unit: float) -> Callable[[str], Value]:
        systems = study.systems
        return lambda name: (
            Estimate.of([each / unit for each in systems[name].cost(cost)])
            if name in systems
            else None
        )

    return [
        Column(header, getter(cost, unit), format_number, direction)
        for header, (cost, unit, direction) in COSTS.items()
    ]


def costs_table(study: Study) -> Table:
    """List the costs of each system."""
    return Table(
        name="costs",
        title="Costs",
        caption=(
            "Mean over runs ± standard deviation. Training documents count once per epoch; "
            "prediction is by the system's own rule; the time of a run includes its evaluation by "
            "all rules. Where several runs shared the machine, a single run would have been faster."
        ),
        columns=[NAME, *cost_columns(study)],
        rows=list(study.systems),
    )


def data_table(study: Study) -> Table:
    """List the statistics of the data."""
    comparison = study.comparison
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
    return Table(
        name="data",
        title="Data",
        caption=(
            "Statistics of the data. An unseen set is the label set of no training document. Words "
            "are those that are read: after the filters and up to the limit."
        ),
        columns=[
            Column("data", lambda values: comparison.data),
            *(Column(name, itemgetter(name), format_number) for name in values),
        ],
        rows=[values],
    )


def labels_table(study: Study) -> Table:
    """List the F1 of the most frequent labels of test, by each system with its own rule."""
    comparison = study.comparison
    found = [label for row in comparison.truth for label in row]
    n_true = np.bincount(found, minlength=comparison.n_labels)
    frequent = [int(label) for label in np.argsort(-n_true, kind="stable")[:MAX_LABELS]]
    f1 = {name: each.label_f1(each.own_rule).mean(axis=0) for name, each in study.systems.items()}

    def score(values: np.ndarray) -> Callable[[int], Value]:
        return lambda label: float(values[label])

    return Table(
        name="labels",
        title="Labels",
        caption=(
            f"F1 of the {len(frequent)} most frequent labels of test, by each system's own rule; "
            "means over runs."
        ),
        columns=[
            Column("label", lambda label: comparison.labels[label]),
            Column("documents", lambda label: float(n_true[label]), format_number),
            *(Column(name, score(values), direction="higher") for name, values in f1.items()),
        ],
        rows=[label for label in frequent if n_true[label]] if f1 else [],
    )


def calibration_table(study: Study) -> Table:
    """List how far probabilities of sets and of labels can be trusted, and what is accepted."""

    def error(score: str) -> Callable[[str], Value]:
        systems = study.systems
        return lambda name: Estimate.of(
            systems[name].recorded(score, systems[name].probability_rule)
        )

    def share(target: float) -> Callable[[str], Value]:
        def get(name: str) -> Value:
            found, rule = study.systems[name].probabilities(), study.systems[name].probability_rule
            runs = [] if found is None else zip(*found, strict=True)
            accepted = (fit_acceptance(rule, *run, target, CONFIDENCE) for run in runs)
            return Estimate.of([each.share for each in accepted])

        return get

    return Table(
        name="calibration",
        title="Calibration and acceptance",
        caption=(
            "The expected calibration error of the probabilities of whole sets and of labels (of "
            "those with more than 5%), before and after the calibration on valid; smaller is "
            "better. Accepted: the share of the documents, the most probable first, of which at "
            f"least the given share is exactly right, with {CONFIDENCE:.0%} confidence; the "
            "threshold is chosen on the same test documents. By rule set. Mean over seeds ± "
            "standard deviation."
        ),
        columns=[
            NAME,
            *(Column(header, error(score), direction="lower") for header, score in ERRORS.items()),
            *(
                Column(
                    f"accepted at {format_decimal(target, 2)}",
                    share(target),
                    "{:.1%}".format,
                    "higher",
                )
                for target in TARGETS
            ),
        ],
        rows=[
            name
            for name, each in study.systems.items()
            if each.probabilities() is not None or each.recorded("calibration_error")
        ],
    )


def set_sums_table(study: Study) -> Table:
    """List how much of the probability of a true set a search of width K misses, by set size."""
    missed: dict[tuple[str, int], dict[int, float]] = {}
    counts: dict[int, int] = {}
    for name, system in study.systems.items():
        runs = [test.set_sums for test in system.tests if test.set_sums is not None]
        runs = [each for each in runs if list(each.documents) == list(runs[0].documents)]
        if not runs:
            continue
        sizes = np.array([len(study.comparison.truth[row]) for row in runs[0].documents])
        exact = np.array([each.exact for each in runs])  # (R, n)
        for place, width in enumerate(runs[0].widths):
            found = np.array([each.found[place] for each in runs])
            # A search that finds all orders may differ from the exact sum by rounding.
            shares = (1 - np.exp(np.minimum(found - exact, 0))).mean(axis=0)
            missed[name, width] = {
                int(size): float(shares[sizes == size].mean()) for size in np.unique(sizes)
            }
        counts |= {int(size): int((sizes == size).sum()) for size in np.unique(sizes)}
    documents = ", ".join(f"{n} of {size} labels" for size, n in sorted(counts.items()))

    def get(size: int) -> Callable[[tuple[str, int]], Value]:
        return lambda row: missed[row].get(size)

    return Table(
        name="set-sums",
        title="What a search of K orders misses of a set",
        caption=(
            "The share of the exact p(true set), the sum over all orders of the set, that the K "
            "orders found by a search miss; mean over documents and seeds. Documents, spread "
            f"evenly over test: {documents}."
        ),
        columns=[
            Column("system", lambda row: row[0]),
            Column("K", lambda row: float(row[1]), format_number),
            *(
                Column(f"{size} labels", get(size), "{:.1%}".format, "lower")
                for size in sorted(counts)
            ),
        ],
        rows=list(missed),
    )


def sequences_table(study: Study) -> Table:
    """Make the paper's Table 4: a document whose best sequence is not of the most probable set.

    One of set-rnn that it predicts right comes first, as in the paper; then the largest set.
    """
    differing = []
    for record in study.records:
        for case in record.cases:
            first = case["sequences"][0]
            best = max(case["sequences"], key=itemgetter("set_probability"))
            if not _is_same_set(first, best["labels"]):
                is_right = _is_same_set(best, case["truth"])
                merit = (record.method == "set-rnn", is_right, len(best["labels"]))
                differing.append((merit, record.method, case, best))
    nothing: Found = {"sequences": [], "id": "", "truth": []}
    _, system, case, best = max(
        differing, key=itemgetter(0), default=((), "", nothing, {"labels": []})
    )
    known = {"the most probable set": best["labels"], "the true set": case["truth"]}

    def set_probability(sequence: Found) -> str:
        sign = "" if sequence["is_exact"] else "≥ "
        return sign + format_probability(sequence["set_probability"])

    def name_set(sequence: Found) -> str:
        return ", ".join(name for name, labels in known.items() if _is_same_set(sequence, labels))

    return Table(
        name="sequences",
        title="Table 4: the most probable set is not that of the most probable sequence",
        caption=(
            f"Document {case['id']} by {system}. The probability of a set is the sum over its "
            "orders (≥: over the orders found)."
        ),
        columns=[
            Column("sequence", lambda each: " → ".join(each["labels"]) or "no label"),
            Column("p", itemgetter("probability"), format_probability, "higher"),
            Column("p of its set", set_probability),
            Column("its set is", name_set),
        ],
        rows=case["sequences"],
    )


def _is_same_set(sequence: Found, labels: Sequence[str]) -> bool:
    return set(sequence["labels"]) == set(labels)


def format_number(value: float) -> str:
    """Write a number with about three digits: 0.06, 1.25, 18.2, 4,118."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


TABLES: tuple[Callable[[Study], Table], ...] = (
    main_table,
    rules_table,
    unseen_sets_table,
    set_sums_table,
    labels_table,
    hierarchy_table,
    calibration_table,
    lambda study: objectives_table(study.names),
    systems_table,
    differences_table,
    costs_table,
    data_table,
)
