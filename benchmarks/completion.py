"""Measure the value of a known label: predict the other labels with it and without it.

    python benchmarks/completion.py DATA MODEL... [--given 1] [--seed 0] [--json FILE]

For each test document with more than `--given` labels, that many of its true labels are drawn and
given. The other true labels are compared with the other predicted labels: of the most probable set
that contains the given labels, and of the most probable set of all, as if nothing were known. A
suggestion is the most probable label that is not given.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

import setrnn
from harness import make_parser, print_head, print_row, save
from setrnn.data.example import Example, KnownLabels
from setrnn.data.read import BadRows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--given", type=int, default=1, help="how many true labels are given")
    parser.add_argument("--seed", type=int, default=0, help="draws them")
    parser.add_argument("--device", default="auto")
    chosen = parser.parse_args(arguments)
    test = list(setrnn.open_dataset(chosen.data).require("test").read(BadRows()))
    results = {}
    print_head("model", "", "F1 of the rest", "exactly right", "suggestion", "documents/s")
    for model in chosen.models:
        tagger = setrnn.load(model, chosen.device)
        results[model.name] = measure(tagger, test, chosen.given, chosen.seed)
        for name, found in results[model.name].items():
            print_row(model.name, name, *(f"{value:,.4f}" for value in found.values()))
    save(results, chosen.json)


def measure(
    tagger: setrnn.Tagger, test: Sequence[Example], n_given: int, seed: int
) -> dict[str, dict[str, float]]:
    """Measure one model with the labels that are given, and without them."""
    chance, known = random.Random(seed), set(tagger.labels.names)
    given, documents = [], []
    for each in test:
        of_model = sorted(known & set(each.labels))
        if len(each.labels) > n_given and len(of_model) >= n_given:
            given.append(set(chance.sample(of_model, n_given)))
            documents.append(each)
    rest = [set(each.labels) - drawn for each, drawn in zip(documents, given, strict=True)]
    texts = [(each.text, each.features) for each in documents]
    found: dict[str, dict[str, float]] = {}
    f1: dict[str, list[float]] = {}
    for name, present in (("ignoring", [set()] * len(given)), ("given", given)):
        start = time.perf_counter()
        completions = list(tagger.complete_stream(texts, map(KnownLabels, present)))
        seconds = time.perf_counter() - start
        sets = [set(each.labels) - drawn for each, drawn in zip(completions, given, strict=True)]
        suggestions = [
            next((label for label, _ in each.suggestions if label not in drawn), "")
            for each, drawn in zip(completions, given, strict=True)
        ]
        pairs = list(zip(sets, rest, strict=True))
        f1[name] = [2 * len(one & other) / (len(one) + len(other)) for one, other in pairs]
        found[name] = {
            "f1": fmean(f1[name]),
            "exact": fmean(one == other for one, other in pairs),
            "suggestion": fmean(s in true for s, true in zip(suggestions, rest, strict=True)),
            "documents_per_second": len(documents) / seconds,
        }
    gains = [after - before for before, after in zip(f1["ignoring"], f1["given"], strict=True)]
    found["gain, standard error"] = {
        "gain": fmean(gains),
        "error": stdev(gains) / len(gains) ** 0.5,
    }
    return found


if __name__ == "__main__":
    main()
