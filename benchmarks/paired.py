"""Is one system better than another? A paired bootstrap over the test documents.

    python benchmarks/paired.py DATA --a RECORD... --a-rule f1 --b RECORD... --b-rule micro-f1

RECORDS are those of `quality.py --predictions`, one a seed. Documents are drawn with replacement,
the same for both; each measure is the mean over a system's seeds. Prints the difference a - b,
its 95% interval, and how often the sign is the other one, twice (a two-sided p).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setrnn.data.prepared import Prepared

MEASURES = ("instance-F1", "label-F1", "micro-F1", "subset accuracy")
DRAWS, AT_ONCE = 10_000, 500
Floats = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]  # documents x labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the prepared folder of the records")
    for name in ("a", "b"):
        parser.add_argument(f"--{name}", type=Path, nargs="+", required=True)
        parser.add_argument(f"--{name}-rule", required=True)
    arguments = parser.parse_args()
    prepared = Prepared(arguments.data)
    truth = prepared.split("test").labels
    n_labels = len(prepared.labels) + len(prepared.unseen_labels)
    is_label = marks([row.tolist() for row in truth], n_labels)
    first = predicted(arguments.a, arguments.a_rule, n_labels)
    second = predicted(arguments.b, arguments.b_rule, n_labels)
    print("| | a | b | a - b | 95% | p |\n|---|---|---|---|---|---|")
    for row in compare(is_label, first, second):
        print(row)


def marks(rows: list[list[int]], n_labels: int) -> Marks:
    """Mark the labels of each row."""
    found = np.zeros((len(rows), n_labels), dtype=bool)
    for number, row in enumerate(rows):
        found[number, row] = True
    return found


def predicted(records: list[Path], rule: str, n_labels: int) -> list[Marks]:
    """Read what each record predicts by a rule."""
    return [
        marks(json.loads(each.read_text(encoding="utf-8"))["predicted"][rule], n_labels)
        for each in records
    ]


def compare(is_label: Marks, first: list[Marks], second: list[Marks]) -> list[str]:
    """Draw documents again and again, and compare: a line of the table for each measure."""
    random = np.random.default_rng(0)
    n = len(is_label)
    whole = np.ones((1, n))
    a, b = (mean_scores(is_label, each, whole)[0] for each in (first, second))
    differences = []
    for _ in range(DRAWS // AT_ONCE):
        weights = random.multinomial(n, np.full(n, 1 / n), size=AT_ONCE).astype(np.float64)
        parts = [mean_scores(is_label, each, weights) for each in (first, second)]
        differences.append(parts[0] - parts[1])
    drawn = np.concatenate(differences)  # (draws, measures)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    p = 2 * np.minimum((drawn <= 0).mean(0), (drawn >= 0).mean(0)).clip(0.5 / DRAWS)
    return [
        f"| {name} | {a[i]:.4f} | {b[i]:.4f} | {a[i] - b[i]:+.4f} "
        f"| {low[i]:+.4f} to {high[i]:+.4f} | {min(p[i], 1.0):.4f} |"
        for i, name in enumerate(MEASURES)
    ]


def mean_scores(is_label: Marks, runs: list[Marks], weights: Floats) -> Floats:
    """Return the measures (draws, measures) of documents that count so often (draws, n)."""
    return np.asarray(np.mean([scores(is_label, each, weights) for each in runs], axis=0))


def scores(is_label: Marks, is_predicted: Marks, weights: Floats) -> Floats:
    """Return instance-F1, label-F1, micro-F1 and subset accuracy: (draws, 4)."""
    both = (is_label & is_predicted).astype(np.float64)
    either = is_label.astype(np.float64) + is_predicted
    hits, sizes = both.sum(1), either.sum(1)
    of_document = np.where(sizes > 0, 2 * hits / np.maximum(sizes, 1), 1.0)
    label_hits, label_sizes = weights @ both, weights @ either  # (draws, L)
    of_label = 2 * label_hits / np.maximum(label_sizes, 1)
    is_exact = (is_label == is_predicted).all(1).astype(np.float64)
    total = weights.sum(1)
    return np.stack(
        [
            weights @ of_document / total,
            of_label.mean(1),
            2 * label_hits.sum(1) / np.maximum(label_sizes.sum(1), 1),
            weights @ is_exact / total,
        ],
        axis=1,
    )


if __name__ == "__main__":
    main()
