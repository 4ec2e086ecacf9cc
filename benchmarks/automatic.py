"""Compare `setrnn train` without a method to scikit-learn and LibMultiLabel, on few documents.

    pip install --constraint constraints.txt libmultilabel
    python benchmarks/automatic.py DATA... [--documents 7000] [--minutes 10] [--cores 2]
        [--part half-of-valid|test] [--systems setrnn scikit-learn libmultilabel] [--out FILE.json]
    python benchmarks/automatic.py DATA... --documents 500 --encoder FOLDER
        --systems br-support set-rnn-exact set-rnn-exact+transformer

Every system gets the same training documents, evenly spaced, and all of valid to choose on. Each
measure is taken by what is made for it: a rule of setrnn, or a threshold of the others that is
chosen on valid for that measure. `setrnn train` runs as a command with an empty cache: its time is
that of the whole command. The name of a method is `setrnn train --method`; with `+transformer`, on
the pretrained weights of `--encoder`. While developing, one half of valid chooses and the other
measures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.preprocessing import MultiLabelBinarizer

import setrnn
from setrnn.data.cache import Source
from setrnn.data.example import Example
from setrnn.data.read import BadRows, write_examples
from setrnn.metrics import evaluate_label_sets, is_better
from setrnn.systems.rules import rule_for
from setrnn.tagging.documents import example_batches
from setrnn.tagging.evaluate import measure_rules

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from choose_sets import MEASURES, SHARES
from scikit_learn_logistic import Fit, fit_logistic, weigh_words

Parts = dict[str, list[Example]]
STRENGTHS = (1.0, 10.0)  # C of scikit-learn, chosen on valid


def read_parts(data: str, n_documents: int, part: str) -> Parts:
    dataset = Source(data, cut_valid=True).open()
    read = {name: list(split.read(BadRows())) for name, split in dataset.splits.items()}
    parts = {"train": read["train"], "valid": read["valid"], "measured": read.get("test", [])}
    if part != "test":
        parts |= {"valid": read["valid"][::2], "measured": read["valid"][1::2]}
    rows = np.linspace(0, len(parts["train"]) - 1, min(n_documents, len(parts["train"])))
    parts["train"] = [parts["train"][row] for row in rows.round().astype(int)]
    return parts


def measure_setrnn(parts: Parts, options: Sequence[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("train", "valid"):
            write_examples(parts[name], place / "data" / f"{name}.jsonl")
        command = ["train", str(place / "data"), "--out", str(place / "model")]
        environment = {**os.environ, "SETRNN_CACHE": str(place / "cache")}
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "setrnn", *command, *options], env=environment, check=True
        )
        seconds = time.perf_counter() - start
        tagger = setrnn.load(place / "model", "cpu")
        rules = {measure: rule_for(measure) for measure in MEASURES}
        batches = example_batches(tagger, parts["measured"])
        found = measure_rules(tagger, batches, list(rules.values()))
        scores = {
            measure: float(found[rule].evaluation.scores.as_dict()[measure])
            for measure, rule in rules.items()
        }
        return {**scores, "seconds": seconds}


def train_options(system: str, encoder: str | None) -> list[str]:
    """Return the options of `setrnn train` for METHOD or METHOD+transformer."""
    method, _, encoding = system.partition("+")
    options = ["--method", method]
    if encoding:
        options += ["--preset", encoding, "--set", f"encoder.path={encoder}"]
    return options


def fit_libmultilabel(features: object, targets: np.ndarray) -> Callable[[object], np.ndarray]:
    from libmultilabel_linear import fit_1vsrest

    return fit_1vsrest(features, targets)


def measure_others(parts: Parts, fits: Sequence[Fit]) -> dict[str, float]:
    """Measure by one threshold per measure; what is fitted and the threshold come from valid."""
    start = time.perf_counter()
    texts = {name: [each.text for each in part] for name, part in parts.items()}
    labels = {name: [each.labels for each in part] for name, part in parts.items()}
    tfidf = weigh_words()
    binarizer = MultiLabelBinarizer()
    features = tfidf.fit_transform(texts["train"])
    targets = binarizer.fit_transform(labels["train"])
    models = [fit(features, targets) for fit in fits]
    scores = {
        name: [model(tfidf.transform(texts[name])) for model in models]
        for name in ("valid", "measured")
    }

    def measure(name: str, number: int, threshold: float) -> dict[str, float]:
        predicted = binarizer.inverse_transform((scores[name][number] >= threshold).astype(int))
        return evaluate_label_sets(labels[name], predicted, list(binarizer.classes_)).as_dict()

    tried = [  # on valid, by model and threshold
        (number, threshold, measure("valid", number, threshold))
        for number in range(len(models))
        for threshold in np.quantile(scores["valid"][number], SHARES)
    ]
    found = {}
    for name in MEASURES:
        best = tried[0]
        for each in tried:
            best = each if is_better(each[2][name], best[2][name], name) else best
        found[name] = float(measure("measured", *best[:2])[name])
    return {**found, "seconds": time.perf_counter() - start}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--documents", type=int, default=7000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--part", choices=("half-of-valid", "test"), default="half-of-valid")
    parser.add_argument("--systems", nargs="+", default=["scikit-learn", "libmultilabel", "setrnn"])
    parser.add_argument("--encoder", help="a folder with a transformer, or its name")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: chosen.cores])
    measures: dict[str, Callable[[Parts], dict[str, float]]] = {
        "scikit-learn": lambda parts: measure_others(parts, list(map(fit_logistic, STRENGTHS))),
        "libmultilabel": lambda parts: measure_others(parts, [fit_libmultilabel]),
        "setrnn": lambda parts: measure_setrnn(parts, ["--budget", str(chosen.minutes)]),
    }
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for data in chosen.data:
        parts = read_parts(data, chosen.documents, chosen.part)
        name = Path(data).name
        print(f"{name}: " + ", ".join(f"{part} {len(each):,}" for part, each in parts.items()))
        rows[name] = {}
        for system in chosen.systems:
            options = train_options(system, chosen.encoder)
            measure = measures.get(system, partial(measure_setrnn, options=options))
            row = rows[name][system] = measure(parts)
            values = " / ".join(f"{row[measure]:.4f}" for measure in MEASURES)
            print(f"{name:14} {system:14} {values}  {row['seconds']:7.1f} s", flush=True)
            if chosen.out:
                chosen.out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
