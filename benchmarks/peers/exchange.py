"""What a peer reads and writes. Needs numpy alone, since it runs in the environment of each peer.

    DATA/train.jsonl valid.jsonl test.jsonl    {"id": ..., "text": ..., "labels": [...]} per line
    DATA/vectors.npz                           of a prepared folder: words (W,), vectors (W, D)
    OUT/ROW.npz                                valid and test, (n, L) scores of the labels of train
    OUT/ROW.json                               labels, what the scores are, settings, time, versions

The labels are those of train, in alphabetical order. A ROW is a row of the tables.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path

import numpy as np

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Part:
    """The documents of one part, in the order of their file."""

    texts: list[str]
    label_sets: list[list[str]]


@dataclass(frozen=True)
class Data:
    """The three parts of a dataset."""

    folder: Path
    train: Part
    valid: Part
    test: Part

    @cached_property
    def labels(self) -> list[str]:
        """The labels of train."""
        return sorted({label for labels in self.train.label_sets for label in labels})

    def targets(self, part: Part) -> np.ndarray:
        """Return 1 where a document has a label of train, (n, L).

        Not in int8: OneVsRestClassifier of scikit-learn 1.9 numbers the columns in the type of the
        targets, and from 128 labels on int8 exchanges them.
        """
        column = {label: number for number, label in enumerate(self.labels)}
        found = np.zeros((len(part.texts), len(column)), dtype=np.int64)
        for row, labels in enumerate(part.label_sets):
            found[row, [column[label] for label in labels if label in column]] = 1
        return found


def best_micro_f1(targets: np.ndarray, scores: np.ndarray) -> float:
    """Return the best micro-F1 that one threshold on scores (n, L) reaches."""
    order = np.argsort(-scores.ravel(), kind="stable")
    is_true, ranked = targets.ravel()[order], scores.ravel()[order]
    n_right, n_chosen = np.cumsum(is_true), np.arange(1, is_true.size + 1)
    f1 = 2 * n_right / (n_chosen + is_true.sum())
    return float(f1[np.append(ranked[1:] < ranked[:-1], True)].max())  # equal scores pass together


@dataclass(frozen=True)
class Scores:
    """The scores of all labels of train for each document of valid and test.

    Attributes:
        row: the name of the row in the tables.
        valid, test: (n, L); a higher score is a likelier label.
        is_probability: whether a score is p(label | document).
        own_threshold: the score from which the peer itself predicts a label; None if it only ranks.
        settings: what was chosen, and how.
    """

    row: str
    valid: np.ndarray
    test: np.ndarray
    is_probability: bool
    own_threshold: float | None
    settings: dict[str, object] = field(default_factory=dict)


def read_data(folder: Path) -> Data:
    """Read the three parts of a dataset."""

    def read(name: str) -> Part:
        with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        return Part([row["text"] for row in rows], [row["labels"] for row in rows])

    return Data(folder, *(read(name) for name in PARTS))


def write_scores(
    out: Path, scores: Scores, labels: Sequence[str], seconds: float, packages: Sequence[str] = ()
) -> None:
    """Write the two files of a row."""
    out.mkdir(parents=True, exist_ok=True)
    arrays = {"valid": scores.valid, "test": scores.test}
    np.savez_compressed(
        out / f"{scores.row}.npz", **{name: np.float32(each) for name, each in arrays.items()}
    )
    description = {
        "row": scores.row,
        "labels": list(labels),
        "is_probability": scores.is_probability,
        "own_threshold": scores.own_threshold,
        "settings": scores.settings,
        "seconds": round(seconds, 1),
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in packages},
        },
    }
    (out / f"{scores.row}.json").write_text(json.dumps(description, indent=1) + "\n")


Train = Callable[[Data, argparse.Namespace], Iterator[Scores]]


def run_peer(
    train: Train,
    packages: Sequence[str],
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> None:
    """Run a peer as a command: read the data, train, and write each row as soon as it is there."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("data", type=Path, help="a folder with train, valid and test.jsonl")
    parser.add_argument("out", type=Path, help="where the scores are written")
    parser.add_argument("--seed", type=int, default=0)
    add_options(parser)
    options = parser.parse_args()
    options.data, options.out = options.data.resolve(), options.out.resolve()  # a peer may chdir
    random.seed(options.seed)
    np.random.seed(options.seed)  # noqa: NPY002 (peers draw from it)
    data = read_data(options.data)
    start = time.perf_counter()
    for scores in train(data, options):
        seconds = time.perf_counter() - start
        write_scores(options.out, scores, data.labels, seconds, packages)
        print(f"{scores.row}: {seconds:.0f} s", flush=True)
        start = time.perf_counter()
