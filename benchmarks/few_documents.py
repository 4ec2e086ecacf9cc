"""Measure the rules with thresholds where few documents choose them.

    python benchmarks/few_documents.py [--json FILE] [--method br-support] [--numbers 200,500,2000]
        [--seeds 5] DATA...

A row per dataset and number of documents that are drawn from its train part, a fifth of them and at
least 100 for the valid part: the mean over the seeds of label-F1, instance-F1 and micro-F1 on the
test part by rules label-f1 and micro-f1, and of the number of rare labels (of less than a fifth of
the documents) that label-f1 predicts for more than half of the documents.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import setrnn
from harness import format_scores, make_parser, print_head, print_row, save, split_numbers
from setrnn.data.example import Example
from setrnn.data.read import BadRows
from setrnn.data.read.write import write_examples
from setrnn.data.source import Source

RULES = ("label-f1", "micro-f1")
MIN_VALID, VALID_SHARE = 100, 0.2
MAX_RARE, EVERYWHERE = 0.2, 0.5


def main(given: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", nargs="+", metavar="DATA")
    parser.add_argument("--method", default="br-support")
    parser.add_argument("--numbers", type=split_numbers, default=[200, 500, 2000])
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args(given)
    print_head("data", "documents", *RULES, "rare labels nearly everywhere")
    rows: list[dict[str, Any]] = []
    for data in chosen.data:
        dataset = Source(data).open()
        train, test = (
            list(dataset.require(name).read(BadRows("stop"))) for name in ("train", "test")
        )
        for number in chosen.numbers:
            found = [
                measure(random.Random(seed).sample(train, number), test, chosen.method)
                for seed in range(chosen.seeds)
            ]
            mean = np.mean(found, axis=0)
            scores = [format_scores(mean[:3]), format_scores(mean[3:6])]
            print_row(Path(data).name, number, *scores, f"{mean[6]:.1f}")
            rows.append({"data": data, "documents": number, "means": mean.tolist()})
    save(rows, chosen.json)


def measure(documents: Sequence[Example], test: Sequence[Example], method: str) -> list[float]:
    """Return the six scores, and the number of rare labels predicted nearly everywhere."""
    n_valid = max(MIN_VALID, int(VALID_SHARE * len(documents)))
    with tempfile.TemporaryDirectory() as folder:
        write_examples(documents[:n_valid], Path(folder, "valid.jsonl"))
        write_examples(documents[n_valid:], Path(folder, "train.jsonl"))
        tagger = setrnn.train(folder, method)
    found = setrnn.evaluate_rules(tagger, test, RULES)
    by_rule = [found[rule].scores for rule in RULES]
    true = Counter(label for each in test for label in each.labels)
    predicted = Counter(label for each in found[RULES[0]].predictions for label in each.labels)
    n_everywhere = sum(
        n > EVERYWHERE * len(test) and true[label] < MAX_RARE * len(test)
        for label, n in predicted.items()
    )
    scores = [[each.label_f1, each.instance_f1, each.micro_f1] for each in by_rule]
    return [*scores[0], *scores[1], n_everywhere]


if __name__ == "__main__":
    main()
