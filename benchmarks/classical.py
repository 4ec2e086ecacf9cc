"""Compare br with scikit-learn and LibMultiLabel on the same tf-idf; also br-support and pcc.

    pip install --constraint constraints.txt libmultilabel
    python benchmarks/classical.py DATA [--out FILE.json] [--words-only] [--skip-scikit-learn]

DATA has train, valid and test parts. The tf-idf vectors are those of words and word pairs, or of
words only. The penalties of our systems are chosen on valid for br, and used for all three, outside
the measured time; the other libraries use their defaults. Every system is trained once and measured
once on test. Times are those of training alone, from the same sparse matrix, in one process on all
cores.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from setrnn.config import ClassicalSettings, TextSettings
from setrnn.data.cache import Source, open_prepared
from setrnn.data.ragged import Ragged
from setrnn.metrics import evaluate_sets
from setrnn.systems.classical import CLASSICAL, TrainingData
from setrnn.systems.classical.features import indicator
from setrnn.systems.classical.system import make_training_data, tune_penalties

Fit = Callable[[], Callable[[sp.csr_matrix], sp.csr_matrix]]


def start_settings(words_only: bool) -> ClassicalSettings:
    return ClassicalSettings(max_pairs=0) if words_only else ClassicalSettings()


def ours(name: str, data: TrainingData, settings: ClassicalSettings) -> Fit:
    model = CLASSICAL[name].model_class

    def fit() -> Callable[[sp.csr_matrix], sp.csr_matrix]:
        fitted = model.fit(data, settings, lambda n_labels: None)

        def predict(features: sp.csr_matrix) -> sp.csr_matrix:
            parts = [
                fitted.candidates(features[start : start + 1024], 1).labels[:, 0]
                for start in range(0, features.shape[0], 1024)
            ]
            rows = [row[row >= 0].tolist() for part in parts for row in part]
            return indicator(Ragged.from_lists(rows), data.n_labels)

        return predict

    return fit


def scikit_learn(features: sp.csr_matrix, targets: sp.csr_matrix) -> Fit:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    def fit() -> Callable[[sp.csr_matrix], sp.csr_matrix]:
        model = OneVsRestClassifier(LogisticRegression(solver="liblinear"), n_jobs=-1)
        return model.fit(features, targets.astype(int)).predict

    return fit


def libmultilabel(features: sp.csr_matrix, targets: sp.csr_matrix) -> Fit:
    from libmultilabel import linear

    def fit() -> Callable[[sp.csr_matrix], sp.csr_matrix]:
        model = linear.train_1vsrest(
            targets.astype(int), features.astype(np.float64), multiclass=False, verbose=False
        )
        return lambda test: sp.csr_matrix(linear.predict_values(model, test.astype(np.float64)) > 0)

    return fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--words-only", action="store_true", help="no word pairs")
    parser.add_argument("--skip-scikit-learn", action="store_true")
    arguments = parser.parse_args()

    prepared = open_prepared(Source(arguments.data), TextSettings())
    tfidf, data = make_training_data(prepared, start_settings(arguments.words_only))
    targets = indicator(data.label_sets, data.n_labels)
    test = prepared.split("test")
    test_features = tfidf.transform(test.tokens)
    test_truth = indicator(test.labels, data.n_labels)

    chosen = tune_penalties(
        CLASSICAL["br"].model_class, prepared, start_settings(arguments.words_only)
    )
    print(f"{data.features.shape[1]:,} features; chosen on valid: l1={chosen.l1} l2={chosen.l2}")
    systems = {
        "LibMultiLabel 1vsrest": libmultilabel(data.features, targets),
        **{name: ours(name, data, chosen) for name in CLASSICAL},
    }
    if not arguments.skip_scikit_learn:
        systems["scikit-learn OneVsRest"] = scikit_learn(data.features, targets)
    rows: dict[str, dict[str, float]] = {}
    for name, fit in systems.items():
        start = time.perf_counter()
        predict = fit()
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        predicted = predict(test_features)
        rate = len(test) / (time.perf_counter() - start)
        scores = evaluate_sets(test_truth, sp.csr_matrix(predicted))
        rows[name] = {
            "instance_f1": scores.instance_f1,
            "label_f1": scores.label_f1,
            "micro_f1": scores.micro_f1,
            "subset_accuracy": scores.subset_accuracy,
            "training_seconds": seconds,
            "predicted_per_second": rate,
            "n_features": data.features.shape[1],
        }
        print(
            f"{name:24} {scores.instance_f1:.4f} / {scores.label_f1:.4f} / {scores.micro_f1:.4f}"
            f"  subset {scores.subset_accuracy:.4f}  {seconds:7.2f} s"
            f"  {rate:8,.0f} documents/s",
            flush=True,
        )
    reference = rows["LibMultiLabel 1vsrest"]["training_seconds"]
    for name, row in rows.items():
        row["time_against_libmultilabel"] = row["training_seconds"] / reference
        print(f"{name:24} {row['time_against_libmultilabel']:.2f} times the time of LibMultiLabel")
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
