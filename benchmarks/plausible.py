"""Measure what the limit to plausible sets costs, and how odd the predicted sets are.

    python benchmarks/plausible.py [--json FILE] [--rule f1] [--split test] [--candidates N]
        MODEL=DATA...

A row per model and weight of log p(set) beside the value of the rule (0: the free rule). Beside the
measure of the rule and the exact matches: the share of predicted sets that no training document
has, that have more labels than any training document, and of a probability below .01. The first
row of a model has the true sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import setrnn
from harness import make_parser, print_head, print_row, save
from setrnn.metrics import evaluate_label_sets
from setrnn.systems.predicting import BatchSearch
from setrnn.systems.rules import RULES
from setrnn.tagging.documents import open_documents
from setrnn.tagging.prediction import name_labels
from setrnn.tagging.tagger import count_by_source

WEIGHTS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1)
UNLIKELY = 0.01


def main(given: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("pairs", nargs="+", metavar="MODEL=DATA")
    parser.add_argument("--rule", default="f1")
    parser.add_argument("--split")
    parser.add_argument("--candidates", type=int, default=1, help="sets to search for, at least")
    chosen = parser.parse_args(given)
    print_head("model", "weight", "measure", "exact", "unseen", "too large", "p < .01")
    rows: list[dict[str, Any]] = []
    for pair in chosen.pairs:
        rows += measure(*pair.split("="), chosen)
    save(rows, chosen.json)


def measure(model: str, data: str, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    tagger = setrnn.load(model)
    batches = list(open_documents(data, chosen.split).batches(tagger))
    truth = [labels for batch in batches for labels in batch.labels]
    assert tagger.seen_sets is not None
    seen = set(map(frozenset, tagger.labels.sets(tagger.seen_sets)))
    most = max(map(len, seen))

    def describe(label_sets: Sequence[Sequence[str]], name: str, probs: Any) -> dict[str, Any]:  # noqa: ANN401
        scores = evaluate_label_sets(truth, label_sets, tagger.labels.names)
        row = {
            "model": model,
            "weight": name,
            "measure": getattr(scores, RULES[chosen.rule].measure or "instance_f1"),
            "exact": scores.subset_accuracy,
            "unseen": np.mean([frozenset(each) not in seen for each in label_sets]),
            "too_large": np.mean([len(each) > most for each in label_sets]),
            "unlikely": np.mean(np.asarray(probs) < UNLIKELY),
        }
        print_row(*(f"{v:.3f}" if isinstance(v, float) else v for v in row.values()))
        return row

    rows = [describe(truth, "truth", np.ones(len(truth)))]
    how = tagger.resolve(chosen.rule, chosen.candidates)
    searches = [
        BatchSearch(tagger.system, batch.tokens, count_by_source([how])) for batch in batches
    ]
    for weight in WEIGHTS:
        limits = how.limits
        if weight:
            limits = replace(limits, plausible=weight, dependencies=tagger.dependencies)
        found = [search.choose(how.rule, limits, tagger.fitted.thresholds) for search in searches]
        probs = np.exp(np.concatenate([each.log_probs for each in found]))
        label_sets = [name_labels(tagger.labels, row) for each in found for row in each.labels]
        rows.append(describe(label_sets, f"{weight:g}", probs))
    return rows


if __name__ == "__main__":
    main()
