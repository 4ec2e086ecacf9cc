from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tiny import TINY

CORPORA = pytest.mark.parametrize("corpus", TINY.values(), ids=TINY)


def product_of_marginals(corpus, text, labels):
    marginals = corpus.marginals(text)
    return np.prod([p if label in labels else 1 - p for label, p in marginals.items()])


def labels_above_half(corpus, text):
    """The set of highest product of marginals."""
    return frozenset(label for label, p in corpus.marginals(text).items() if p > 0.5)


def most_probable_set(corpus, text):
    return max(corpus.truth[text], key=corpus.truth[text].get)


def chain_accuracy(corpus, label_order):
    """Share of the texts that a greedy chain of log-linear steps gets right."""
    texts = list(corpus.truth)
    vocabulary = sorted({word for text in texts for word in text.split()})
    X = np.array([[word in text.split() for word in vocabulary] for text in texts], float)
    truth = [most_probable_set(corpus, text) for text in texts]
    Y = np.array([[label in labels for label in label_order] for labels in truth])
    predicted = np.zeros(Y.shape)
    for step in range(len(label_order)):
        model = LogisticRegression(C=1e4, max_iter=5000).fit(np.c_[X, Y[:, :step]], Y[:, step])
        predicted[:, step] = model.predict(np.c_[X, predicted[:, :step]])
    return (predicted == Y).all(axis=1).mean()


@CORPORA
def test_distributions_sum_to_one_over_known_labels(corpus):
    for distribution in corpus.truth.values():
        assert sum(distribution.values()) == pytest.approx(1)
        assert all(p > 0 for p in distribution.values())
        assert all(labels <= set(corpus.labels) for labels in distribution)


@CORPORA
def test_a_large_sample_converges_to_the_truth(corpus):
    n = 40_000
    drawn = Counter((e.text, frozenset(e.labels)) for e in corpus.sample(n, seed=5))
    for text, distribution in corpus.truth.items():
        for labels, p in distribution.items():
            expected = p / len(corpus.truth)
            assert drawn.pop((text, labels), 0) / n == pytest.approx(
                expected, abs=5 * (expected / n) ** 0.5
            )
    assert not drawn, "a set was drawn that the truth excludes"


@CORPORA
def test_a_sample_repeats_with_its_seed(corpus):
    assert corpus.sample(50, seed=1) == corpus.sample(50, seed=1)
    assert corpus.sample(50, seed=1) != corpus.sample(50, seed=2)
    assert corpus.sample(20, seed=1) == corpus.sample(50, seed=1)[:20]


def test_the_corpora_hold_sets_of_zero_to_four_labels():
    sizes = {len(s) for corpus in TINY.values() for d in corpus.truth.values() for s in d}
    assert sizes == {0, 1, 2, 3, 4}


def test_independent_is_the_product_of_its_marginals():
    corpus = TINY["independent"]
    for text, distribution in corpus.truth.items():
        assert len(distribution) == 2 ** len(corpus.labels)
        for labels, p in distribution.items():
            assert p == pytest.approx(product_of_marginals(corpus, text, labels))
        assert labels_above_half(corpus, text) == most_probable_set(corpus, text)


def test_exclusive_fools_the_product_of_marginals():
    corpus = TINY["exclusive"]
    for text, distribution in corpus.truth.items():
        assert labels_above_half(corpus, text) not in distribution


def test_ordered_needs_the_rare_labels_first():
    corpus = TINY["ordered"]
    n_texts = Counter(label for d in corpus.truth.values() for s in d for label in s)
    by_falling_frequency = sorted(corpus.labels, key=n_texts.get, reverse=True)
    assert by_falling_frequency[:2] == ["grey", "queue"]
    assert chain_accuracy(corpus, by_falling_frequency) < 0.5
    assert chain_accuracy(corpus, by_falling_frequency[::-1]) == 1
