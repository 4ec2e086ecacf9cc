"""LibMultiLabel's linear methods on its own tf-idf: 1vsrest, tree, thresholding, cost-sensitive.

All are L2-loss SVMs with its default settings; their decision values are not probabilities.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from exchange import Data, Scores, run_peer
from libmultilabel import linear
from scipy.sparse import csr_matrix

METHODS = {
    "1vsrest": linear.train_1vsrest,
    "tree": linear.train_tree,
    "thresholding": linear.train_thresholding,
    "cost-sensitive": linear.train_cost_sensitive,
}


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
    x, valid = found["train"]["x"], found["test"]["x"]
    test = preprocessor.vectorizer.transform(data.test.texts)
    names = list(preprocessor.label_mapping)
    order = [names.index(label) for label in data.labels]
    y = found["train"]["y"]

    def predict(model: object) -> tuple[np.ndarray, np.ndarray]:
        both = (np.asarray(linear.predict_values(model, part)) for part in (valid, test))
        valid_scores, test_scores = (scores[:, order] for scores in both)
        return valid_scores, test_scores

    for name in options.methods:
        own_threshold = None if name == "tree" else 0.0  # the tree ranks labels
        model = METHODS[name](y, x, verbose=False)
        yield Scores(f"libmultilabel-{name}", *predict(model), False, own_threshold)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))


if __name__ == "__main__":
    run_peer(train, ["libmultilabel"], add_options)
