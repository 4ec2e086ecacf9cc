"""LibMultiLabel's linear methods on its own tf-idf: 1vsrest, thresholding, cost-sensitive, tree.

`libmultilabel-logistic` is 1vsrest with a logistic loss (liblinear's -s 0) in place of its L2-loss
SVM: its decision values are the log-odds of a label.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from exchange import Data, Scores, run_peer
from libmultilabel import linear
from scipy.sparse import csr_matrix


def fit_1vsrest(features: object, targets: np.ndarray) -> Callable[[object], np.ndarray]:
    model = linear.train_1vsrest(csr_matrix(targets), csr_matrix(features), verbose=False)
    return lambda more: np.asarray(linear.predict_values(model, csr_matrix(more)))


def train(data: Data, options: argparse.Namespace) -> Iterator[Scores]:
    parts = {
        name: {"x": part.texts, "y": part.label_sets}
        for name, part in (("train", data.train), ("test", data.valid))
    }
    preprocessor = linear.Preprocessor()
    found = preprocessor.fit_transform({"data_format": "txt", **parts})
    features = found["train"]["x"], found["test"]["x"]
    x, valid = features
    test = preprocessor.vectorizer.transform(data.test.texts)
    names = list(preprocessor.label_mapping)
    order = [names.index(label) for label in data.labels]
    y = found["train"]["y"]

    def predict(model: object) -> tuple[np.ndarray, np.ndarray]:
        both = (np.asarray(linear.predict_values(model, part)) for part in (valid, test))
        valid_scores, test_scores = (scores[:, order] for scores in both)
        return valid_scores, test_scores

    methods = {
        "1vsrest": linear.train_1vsrest,
        "thresholding": linear.train_thresholding,
        "cost-sensitive": linear.train_cost_sensitive,
    }
    for name in options.methods:
        if name == "logistic":
            model = linear.train_1vsrest(y, x, options="-s 0", verbose=False)
            probs = (1 / (1 + np.exp(-scores)) for scores in predict(model))
            yield Scores("libmultilabel-logistic", *probs, True, 0.5, {"options": "-s 0"})
        elif name == "tree":
            model = linear.train_tree(y, x, verbose=False)
            yield Scores("libmultilabel-tree", *predict(model), False, None)
        else:
            model = methods[name](y, x, verbose=False)
            yield Scores(f"libmultilabel-{name}", *predict(model), False, 0.0)


def add_options(parser: argparse.ArgumentParser) -> None:
    every = ["1vsrest", "logistic", "thresholding", "cost-sensitive", "tree"]
    parser.add_argument("--methods", nargs="+", choices=every, default=every)


if __name__ == "__main__":
    run_peer(train, ["libmultilabel"], add_options)
