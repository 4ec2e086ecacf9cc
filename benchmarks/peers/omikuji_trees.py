"""Omikuji: trees of labels, as Parabel and Bonsai build them, on tf-idf of words and word pairs.

It ranks labels by scores; a threshold is chosen on valid. This is Annif's backend for large
vocabularies without the rest of Annif.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import omikuji
from exchange import Data, Scores, run_peer
from scikit_learn_logistic import weigh_words
from scipy.sparse import csr_matrix

BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}


def write_libsvm(features: csr_matrix, targets: np.ndarray, file: Path) -> None:
    """Write the format of the Extreme Classification Repository."""
    with file.open("w", encoding="ascii") as lines:
        lines.write(f"{features.shape[0]} {features.shape[1]} {targets.shape[1]}\n")
        for row in range(features.shape[0]):
            part = slice(features.indptr[row], features.indptr[row + 1])
            labels = ",".join(map(str, np.flatnonzero(targets[row])))
            pairs = zip(features.indices[part], features.data[part], strict=True)
            lines.write(f"{labels} " + " ".join(f"{i}:{v:.6g}" for i, v in pairs) + "\n")


def predict(model: omikuji.Model, features: csr_matrix, n_labels: int) -> np.ndarray:
    scores = np.zeros((features.shape[0], n_labels))
    for row in range(features.shape[0]):
        part = slice(features.indptr[row], features.indptr[row + 1])
        words = list(
            zip(features.indices[part].tolist(), features.data[part].tolist(), strict=True)
        )
        for label, score in model.predict(words, beam_size=n_labels, top_k=n_labels):
            scores[row, label] = score
    return scores


def train(data: Data, options: argparse.Namespace) -> Iterator[Scores]:
    tfidf = weigh_words()
    x = csr_matrix(tfidf.fit_transform(data.train.texts))
    valid, test = (csr_matrix(tfidf.transform(part.texts)) for part in (data.valid, data.test))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.txt"
        write_libsvm(x, data.targets(data.train), file)
        for name, changed in (("parabel", {}), ("bonsai", BONSAI)):
            settings = omikuji.Model.default_hyper_param()
            for key, value in changed.items():
                setattr(settings, key, value)
            model = omikuji.Model.train_on_data(str(file), settings, n_threads=options.threads)
            both = (predict(model, part, len(data.labels)) for part in (valid, test))
            yield Scores(f"omikuji-{name}", *both, False, None, dict(changed))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=2)


if __name__ == "__main__":
    run_peer(train, ["omikuji"], add_options)
