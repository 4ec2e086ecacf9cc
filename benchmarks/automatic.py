"""Compare `setrnn train` without a method to scikit-learn and LibMultiLabel, on few documents.

    pip install --constraint constraints.txt libmultilabel
    python benchmarks/cells.py cut CELLS DATA... --documents 7000 --words 0
    python benchmarks/automatic.py CELLS/*... [--minutes 10] [--cores 2]
        [--systems setrnn scikit-learn libmultilabel br set-rnn-exact] [--json FILE]

DATA is a folder with train, valid and test. Every system chooses on valid, and is measured on test:
each measure by what is made for it, a rule of setrnn, or a threshold of the others that is chosen
on valid for that measure. `setrnn train` runs as a command with an empty cache: its time is that of
the whole command. The name of a method is `setrnn train --method`.
"""

from __future__ import annotations

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
from harness import format_scores, make_parser, print_head, print_row, save
from setrnn.metrics import evaluate_label_sets, is_better
from setrnn.systems.rules import rule_for

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from choose_sets import MEASURES, SHARES
from exchange import Data, read_data
from scikit_learn_logistic import Fit, fit_logistic, weigh_words

STRENGTHS = (1.0, 10.0)  # C of scikit-learn, chosen on valid


def measure_setrnn(data: Data, options: Sequence[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        command = ["train", str(data.folder), "--out", f"{place}/model", *options]
        environment = {**os.environ, "SETRNN_CACHE": f"{place}/cache"}
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "setrnn", *command], env=environment, check=True)
        seconds = time.perf_counter() - start
        tagger = setrnn.load(f"{place}/model", "cpu")
        rules = [rule_for(measure) for measure in MEASURES]
        found = setrnn.evaluate_rules(tagger, data.folder, rules, split="test")
        scores = {
            measure: float(found[rule].scores.as_dict()[measure])
            for measure, rule in zip(MEASURES, rules, strict=True)
        }
        return {**scores, "seconds": seconds}


def fit_libmultilabel(features: object, targets: np.ndarray) -> Callable[[object], np.ndarray]:
    from libmultilabel_linear import fit_1vsrest

    return fit_1vsrest(features, targets)


def measure_others(data: Data, fits: Sequence[Fit]) -> dict[str, float]:
    """Measure by one threshold per measure; what is fitted and the threshold come from valid."""
    start = time.perf_counter()
    tfidf, binarizer = weigh_words(), MultiLabelBinarizer()
    features = tfidf.fit_transform(data.train.texts)
    targets = binarizer.fit_transform(data.train.label_sets)
    models = [fit(features, targets) for fit in fits]
    parts = {"valid": data.valid, "test": data.test}
    scores = {
        name: [model(tfidf.transform(part.texts)) for model in models]
        for name, part in parts.items()
    }

    def measure(name: str, number: int, threshold: float) -> dict[str, float]:
        predicted = binarizer.inverse_transform((scores[name][number] >= threshold).astype(int))
        truth, labels = parts[name].label_sets, list(binarizer.classes_)
        return evaluate_label_sets(truth, predicted, labels).as_dict()

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
        found[name] = float(measure("test", *best[:2])[name])
    return {**found, "seconds": time.perf_counter() - start}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--systems", nargs="+", default=["scikit-learn", "libmultilabel", "setrnn"])
    chosen = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: chosen.cores])
    measures: dict[str, Callable[[Data], dict[str, float]]] = {
        "scikit-learn": partial(measure_others, fits=list(map(fit_logistic, STRENGTHS))),
        "libmultilabel": partial(measure_others, fits=[fit_libmultilabel]),
        "setrnn": partial(measure_setrnn, options=["--budget", str(chosen.minutes)]),
    }
    rows: dict[str, dict[str, dict[str, float]]] = {}
    print_head("data", "system", *MEASURES, "seconds")
    for folder in chosen.data:
        data, rows[folder.name] = read_data(folder), {}
        for system in chosen.systems:
            method = partial(measure_setrnn, options=["--method", system])
            row = rows[folder.name][system] = measures.get(system, method)(data)
            *scores, seconds = row.values()
            print_row(folder.name, system, *format_scores(scores).split(" / "), f"{seconds:.1f}")
            save(rows, chosen.json)


if __name__ == "__main__":
    main()
