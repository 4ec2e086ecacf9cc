"""Train pcc with 1,500 labels, for which the paper could not run it.

    python benchmarks/pcc_many_labels.py [--labels 1500] [--documents 20000]

The documents are synthetic, with the shape of the paper's largest dataset (7.4 of about 1,500
labels): each label has its own words, and a document mixes those of its labels with common words.
Labels come in families, so that the chain has something to learn. Prints times and scores, also of
br and br-support.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from setrnn.config import ClassicalSettings
from setrnn.data.ragged import Ragged
from setrnn.metrics import evaluate_sets
from setrnn.systems.classical import CLASSICAL, TrainingData
from setrnn.systems.classical.features import Tfidf, indicator

N_TOKENS = 30_000
N_WORDS = 200


def make_documents(n_documents: int, n_labels: int, seed: int) -> tuple[Ragged, Ragged]:
    """Return documents as token ids, and their label sets."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, n_labels + 1) ** 0.8
    n_families = n_labels // 15
    tokens, label_sets = [], []
    for _ in range(n_documents):
        family = int(random.integers(n_families))
        # labels l, l + n_families, l + 2 n_families ... are one family
        n_own = 1 + int(random.poisson(3.2))
        own = family + n_families * random.integers(0, n_labels // n_families, n_own)
        n_any = 1 + int(random.poisson(2.6))
        anywhere = random.choice(n_labels, n_any, p=weights / weights.sum())
        labels = np.unique(np.concatenate([own, anywhere]))
        labels = labels[labels < n_labels]
        topical = random.choice(labels, N_WORDS // 2) * 15 + random.integers(0, 15, N_WORDS // 2)
        common = random.zipf(1.3, N_WORDS // 2) % N_TOKENS
        tokens.append((3 + np.concatenate([topical, common]) % (N_TOKENS - 3)).tolist())
        label_sets.append(labels.tolist())
    return Ragged.from_lists(tokens), Ragged.from_lists(label_sets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=1500)
    parser.add_argument("--documents", type=int, default=20_000)
    arguments = parser.parse_args()
    tokens, label_sets = make_documents(arguments.documents, arguments.labels, seed=0)
    test_tokens, test_sets = make_documents(1_000, arguments.labels, seed=1)
    tfidf, features = Tfidf.fit(tokens, N_TOKENS)
    data = TrainingData(features, label_sets, arguments.labels)
    truth = indicator(test_sets, arguments.labels)
    print(f"{arguments.documents:,} documents, {label_sets.lengths.mean():.2f} labels each")
    for name in CLASSICAL:
        model = CLASSICAL[name].model_class
        start = time.perf_counter()
        fitted = model.fit(data, ClassicalSettings(), lambda n_labels: None)
        trained = time.perf_counter() - start
        start = time.perf_counter()
        candidates = fitted.candidates(tfidf.transform(test_tokens), 12)
        predicted = time.perf_counter() - start
        rows = [row[row >= 0].tolist() for row in candidates.labels[:, 0]]
        scores = evaluate_sets(truth, indicator(Ragged.from_lists(rows), arguments.labels))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{name:10} train {trained:6.1f} s  predict {len(truth.indptr) / predicted:6,.0f}/s  "
            f"instance-F1 {scores.instance_f1:.3f}  label-F1 {scores.label_f1:.3f}  "
            f"subset {scores.subset_accuracy:.3f}  peak {memory:,.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
