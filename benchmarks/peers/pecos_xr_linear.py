"""pecos: XR-Linear, a tree of labels by their positive instances, on tf-idf of words and pairs.

It ranks labels by scores; a threshold is chosen on valid.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from exchange import Data, Scores, run_peer
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from scikit_learn_logistic import weigh_words
from scipy.sparse import csr_matrix


def train(data: Data, options: argparse.Namespace) -> Iterator[Scores]:
    tfidf = weigh_words()
    x = csr_matrix(tfidf.fit_transform(data.train.texts), dtype=np.float32)
    y = csr_matrix(data.targets(data.train), dtype=np.float32)
    labels = LabelEmbeddingFactory.create(y, x, method="pifa")
    tree = Indexer.gen(labels, indexer_type="hierarchicalkmeans")
    n_labels = len(data.labels)
    for name, cluster in (("tree", tree), ("flat", None)):
        model = XLinearModel.train(x, y, C=cluster, threads=options.threads)
        both = [
            model.predict(
                csr_matrix(tfidf.transform(part.texts), dtype=np.float32),
                beam_size=n_labels, only_topk=n_labels, threads=options.threads,
            ).toarray()
            for part in (data.valid, data.test)
        ]  # fmt: skip
        yield Scores(f"pecos-{name}", *both, False, None)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=2)


if __name__ == "__main__":
    run_peer(train, ["libpecos"], add_options)
