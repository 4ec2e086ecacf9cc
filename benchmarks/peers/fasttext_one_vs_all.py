"""fastText with the loss `ova`: one sigmoid per label on the mean of words and word pairs.

Epochs and learning rate are chosen on valid, by the best micro-F1 of one threshold. Its own search
for settings, `autotune`, is not used: what it finds depends on the time it gets.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import fasttext
import numpy as np
from exchange import Data, Part, Scores, best_micro_f1, run_peer

PREFIX = "__label__"


def clean(text: str) -> str:
    """Lower the case, set signs apart and keep one line, as its tutorial does."""
    return " ".join(re.sub(r"([^\w\s])", r" \1 ", text.lower()).split())


def predict(model: object, part: Part, n_labels: int) -> np.ndarray:
    """Return the probabilities (n, L) of the labels, which are named by their numbers."""
    scores = np.zeros((len(part.texts), n_labels))
    for row, text in enumerate(part.texts):
        names, probs = model.predict(clean(text), k=-1)
        scores[row, [int(name[len(PREFIX) :]) for name in names]] = probs
    return np.clip(scores, 0, 1)


def write_training(data: Data, file: Path) -> None:
    column = {label: number for number, label in enumerate(data.labels)}
    rows: Sequence[tuple[str, list[str]]] = list(
        zip(data.train.texts, data.train.label_sets, strict=True)
    )
    with file.open("w", encoding="utf-8") as lines:
        for text, labels in rows:
            names = " ".join(f"{PREFIX}{column[label]}" for label in labels)
            lines.write(f"{names} {clean(text)}\n")


def train(data: Data, options: argparse.Namespace) -> Iterator[Scores]:
    targets, best = data.targets(data.valid), None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.txt"
        write_training(data, file)
        for epochs, rate in product(options.epochs, options.rates):
            model = fasttext.train_supervised(
                str(file), loss="ova", wordNgrams=2, minCount=2, dim=100, thread=1,
                bucket=500_000, seed=options.seed, verbose=0, epoch=epochs, lr=rate,
            )  # fmt: skip
            valid = predict(model, data.valid, len(data.labels))
            score = best_micro_f1(targets, valid)
            if best is None or score > best[0]:
                test = predict(model, data.test, len(data.labels))
                best = score, {"epoch": epochs, "lr": rate}, valid, test
    assert best is not None
    _, chosen, valid, test = best
    yield Scores("fasttext", valid, test, True, 0.5, {"wordNgrams": 2, **chosen})


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epochs", nargs="+", type=int, default=[25, 50], help="what is tried")
    parser.add_argument("--rates", nargs="+", type=float, default=[0.5, 1.0])


if __name__ == "__main__":
    run_peer(train, ["fasttext"], add_options)
