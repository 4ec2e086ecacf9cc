"""scikit-learn's 25 lines: tf-idf of words and word pairs, and a logistic regression per label.

The strength of the penalty is chosen on valid, by the best micro-F1 of one threshold.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from exchange import Data, Scores, best_micro_f1, run_peer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

STRENGTHS = (1.0, 10.0, 100.0)  # C, chosen on valid

Fit = Callable[[object, np.ndarray], Callable[[object], np.ndarray]]


def weigh_words() -> TfidfVectorizer:
    return TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)


def fit_logistic(strength: float) -> Fit:
    def fit(features: object, targets: np.ndarray) -> Callable[[object], np.ndarray]:
        one = LogisticRegression(C=strength, solver="liblinear")
        return OneVsRestClassifier(one).fit(features, targets).predict_proba

    return fit


def fit_best(
    data: Data, features: object, valid: object, test: object
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the scores of valid and test with the penalty that is best on valid, and its C."""
    tried = []
    for strength in STRENGTHS:
        predict = fit_logistic(strength)(features, data.targets(data.train))
        tried.append((predict(valid), predict(test)))
    best = find_best(data, tried)
    return *tried[best], STRENGTHS[best]


def find_best(data: Data, tried: Sequence[tuple[np.ndarray, np.ndarray]]) -> int:
    """Return which scores of valid and test are best on valid."""
    targets = data.targets(data.valid)
    return int(np.argmax([best_micro_f1(targets, valid) for valid, _ in tried]))


def train(data: Data, options: argparse.Namespace) -> Iterator[Scores]:
    tfidf = weigh_words()
    features = tfidf.fit_transform(data.train.texts)
    valid, test = (tfidf.transform(part.texts) for part in (data.valid, data.test))
    *scores, strength = fit_best(data, features, valid, test)
    yield Scores("scikit-learn", *scores, True, 0.5, {"C": strength})


if __name__ == "__main__":
    run_peer(train, ["scikit-learn"])
