"""Compare br with scikit-learn and LibMultiLabel on the same tf-idf; also br-support and pcc.

    pip install --constraint constraints.txt libmultilabel
    python benchmarks/classical.py DATA [--part valid] [--words-only] [--systems br ...] [--turns 3]

DATA has train, valid and test parts. The tf-idf vectors are those of words and word pairs, or of
words only. The penalties of our systems are chosen on valid for br, and used for all three, outside
the measured time; the other libraries use their defaults. Every system is trained in turn, as often
as --turns says, and measured on one part. Times are medians of training alone, from the same sparse
matrix, in one process on all cores: on the clock, and of all cores together. On a machine that
others use, compare the latter.
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

REFERENCE = "LibMultiLabel 1vsrest"
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
    parser.add_argument("--part", choices=("test", "valid"), default="test")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--systems", nargs="+", default=[*CLASSICAL, "scikit-learn"])
    parser.add_argument("--default-penalties", action="store_true", help="choose none on valid")
    arguments = parser.parse_args()

    prepared = open_prepared(Source(arguments.data), TextSettings())
    tfidf, data = make_training_data(prepared, start_settings(arguments.words_only))
    targets = indicator(data.label_sets, data.n_labels)
    measured = prepared.split(arguments.part)
    features = tfidf.transform(measured.tokens)
    truth = indicator(measured.labels, data.n_labels)

    chosen = start_settings(arguments.words_only)
    if not arguments.default_penalties:
        chosen = tune_penalties(CLASSICAL["br"].model_class, prepared, chosen)
    print(f"{data.features.shape[1]:,} features, penalties l1={chosen.l1} l2={chosen.l2}")
    others = {"scikit-learn": scikit_learn(data.features, targets)}
    systems = {
        REFERENCE: libmultilabel(data.features, targets),
        **{name: others.get(name) or ours(name, data, chosen) for name in arguments.systems},
    }
    rows: dict[str, dict[str, float]] = {}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for _ in range(arguments.turns):
        for name, fit in systems.items():
            start, start_cpu = time.perf_counter(), time.process_time()
            predict = fit()
            seconds[name].append((time.perf_counter() - start, time.process_time() - start_cpu))
            if name in rows:
                continue
            start = time.perf_counter()
            predicted = predict(features)
            rate = len(measured) / (time.perf_counter() - start)
            scores = evaluate_sets(truth, sp.csr_matrix(predicted))
            rows[name] = {
                "instance_f1": scores.instance_f1,
                "label_f1": scores.label_f1,
                "micro_f1": scores.micro_f1,
                "subset_accuracy": scores.subset_accuracy,
                "predicted_per_second": rate,
                "n_features": data.features.shape[1],
            }
    for name, row in rows.items():
        row["training_seconds"], row["processor_seconds"] = np.median(seconds[name], axis=0)
        clock = row["training_seconds"] / rows[REFERENCE]["training_seconds"]
        processor = row["processor_seconds"] / rows[REFERENCE]["processor_seconds"]
        row["time_against_libmultilabel"] = clock
        row["processor_time_against_libmultilabel"] = processor
        print(
            f"{name:24} {row['instance_f1']:.4f} / {row['label_f1']:.4f} / {row['micro_f1']:.4f}"
            f"  subset {row['subset_accuracy']:.4f}"
            f"  {row['training_seconds']:7.2f} s (x{clock:.2f})"
            f"  {row['processor_seconds']:7.2f} s of processors (x{processor:.2f})"
            f"  {row['predicted_per_second']:8,.0f} documents/s"
        )
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
