"""Measure what the limit to plausible sets costs, and how odd the predicted sets are.

    python benchmarks/plausible.py [--json FILE] [--rule f1] [--split test] [--candidates N]
        MODEL=DATA...

A row per model and least share of the most probable set's probability (0: the free rule). Beside
the F1 and the exact matches: the share of predicted sets that no training document has, that have
more labels than any training document, and of a probability below .01. The first row of a model
has the true sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

import setrnn
from harness import make_parser, print_head, print_row, save
from setrnn.metrics import evaluate_label_sets
from setrnn.systems.predicting import BatchSearch
from setrnn.tagging.documents import open_documents
from setrnn.tagging.tagger import count_for_all

SHARES = (0.0, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0)
UNLIKELY = 0.01


def main(given: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("pairs", nargs="+", metavar="MODEL=DATA")
    parser.add_argument("--rule", default="f1")
    parser.add_argument("--split")
    parser.add_argument("--candidates", type=int, default=1, help="sets to search for, at least")
    chosen = parser.parse_args(given)
    print_head("model", "share", "F1", "exact", "unseen", "too large", "p < .01")
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
            "share": name,
            "f1": scores.instance_f1,
            "exact": scores.subset_accuracy,
            "unseen": np.mean([frozenset(each) not in seen for each in label_sets]),
            "too_large": np.mean([len(each) > most for each in label_sets]),
            "unlikely": np.mean(np.asarray(probs) < UNLIKELY),
        }
        print_row(*(f"{v:.3f}" if isinstance(v, float) else v for v in row.values()))
        return row

    rows = [describe(truth, "truth", np.ones(len(truth)))]
    options = {
        share: tagger.resolve(chosen.rule, chosen.candidates, setrnn.Limits(plausible=share))
        for share in SHARES
    }
    searches = [
        BatchSearch(tagger.system, batch.tokens, count_for_all(options.values()))
        for batch in batches
    ]
    for share, how in options.items():
        found = [p for search in searches for p in tagger.name_chosen(search, how)]
        raw = [search.choose(how.rule, how.limits, tagger.thresholds) for search in searches]
        probs = np.exp(np.concatenate([each.log_probs for each in raw]))
        rows.append(describe([each.labels for each in found], f"{share:g}", probs))
    return rows


if __name__ == "__main__":
    main()
