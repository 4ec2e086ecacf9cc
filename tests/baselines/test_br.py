import numpy as np
import pytest
import scipy.sparse as sp
from brute_force import all_sets, found_sets, identity_weights, product_probability
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from setrnn.baselines.br import BinaryRelevance, most_probable_products
from setrnn.baselines.linear import TrainingData
from setrnn.config import ClassicalSettings
from setrnn.data.ragged import Ragged

logits_of_documents = st.tuples(st.integers(1, 4), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.floats(-8, 8, width=32))
)


@given(logits_of_documents, st.integers(1, 80))
@settings(deadline=None)
def test_the_best_sets_are_those_of_brute_force(logits, n_sets):
    n, n_labels = logits.shape
    candidates = most_probable_products(logits, n_sets)
    for document in range(n):
        truth = {
            labels: product_probability(logits[document], labels) for labels in all_sets(n_labels)
        }
        found = found_sets(candidates, document)
        assert len(found) == min(n_sets, 2**n_labels)
        for labels, probability in found.items():
            assert probability == pytest.approx(truth[labels], rel=1e-6)
        best = sorted(truth.values(), reverse=True)[: len(found)]
        np.testing.assert_allclose(list(found.values()), best, rtol=1e-6)


@given(logits_of_documents)
@settings(deadline=None)
def test_the_probabilities_of_all_sets_sum_to_one(logits):
    candidates = most_probable_products(logits, 2 ** logits.shape[1])
    np.testing.assert_allclose(np.exp(candidates.log_probs).sum(1), 1, rtol=1e-9)


@given(logits_of_documents, st.integers(1, 10), st.integers(0, 10))
@settings(deadline=None)
def test_asking_for_more_sets_adds_behind(logits, n_sets, n_more):
    few = most_probable_products(logits, n_sets)
    many = most_probable_products(logits, n_sets + n_more)
    k = few.log_probs.shape[1]
    np.testing.assert_allclose(many.log_probs[:, :k], few.log_probs, rtol=1e-9, atol=1e-12)


def test_labels_without_an_opinion_give_equal_sets():
    candidates = most_probable_products(np.zeros((1, 3), np.float32), 8)
    assert set(found_sets(candidates, 0)) == set(all_sets(3))
    np.testing.assert_allclose(np.exp(candidates.log_probs), 1 / 8)


def test_extreme_log_odds_stay_finite():
    candidates = most_probable_products(np.array([[300.0, -300.0, 0.5]], np.float32), 8)
    assert np.isfinite(candidates.log_probs).all()
    assert candidates.set_at(0, 0) == [0, 2]


def test_many_labels_and_few_sets_are_exact():
    """The 5 best of 2^300: checked against the best that turning one or two labels gives."""
    logits = np.random.default_rng(0).normal(size=(3, 300)).astype(np.float32)
    candidates = most_probable_products(logits, 5)
    for document in range(3):
        cost = np.sort(np.abs(logits[document].astype(float)))[:6]
        totals = sorted(sum(cost[list(turned)]) for turned in all_sets(6))[:5]
        below_best = candidates.log_probs[document, 0] - candidates.log_probs[document]
        np.testing.assert_allclose(below_best, totals, atol=1e-6)


def test_no_documents_give_no_candidates():
    candidates = most_probable_products(np.zeros((0, 4), np.float32), 3)
    assert len(candidates) == 0


def test_the_best_set_takes_every_label_above_one_half():
    logits = np.random.default_rng(1).normal(size=(20, 30)).astype(np.float32)
    linear, documents = identity_weights(logits)
    model = BinaryRelevance(linear)
    marginals = model.candidates(documents, 1).marginals(model.n_labels)
    candidates = model.candidates(documents, 1)
    for document in range(20):
        assert candidates.set_at(document, 0) == np.flatnonzero(marginals[document] > 0.5).tolist()


def test_marginals_are_the_sums_over_all_sets():
    logits = np.random.default_rng(2).normal(size=(4, 5)).astype(np.float32)
    linear, documents = identity_weights(logits)
    model = BinaryRelevance(linear)
    candidates = model.candidates(documents, 32)
    for document in range(4):
        found = found_sets(candidates, document)
        sums = [sum(p for labels, p in found.items() if label in labels) for label in range(5)]
        np.testing.assert_allclose(
            model.candidates(documents, 1).marginals(model.n_labels)[document], sums, atol=1e-6
        )


def test_labels_are_learned_from_their_words():
    words = np.stack([np.arange(40) % 2, np.arange(40) // 2 % 2], axis=1)
    label_sets = Ragged.from_lists([np.flatnonzero(row).tolist() for row in words])
    features = sp.csr_matrix(words.astype(np.float32))
    model = BinaryRelevance.fit(TrainingData(features, label_sets, 2), ClassicalSettings())
    candidates = model.candidates(features, 1)
    assert [candidates.set_at(i, 0) for i in range(40)] == [row.tolist() for row in label_sets]


def test_arrays_rebuild_the_same_model():
    linear, documents = identity_weights(np.random.default_rng(3).normal(size=(4, 5)))
    model = BinaryRelevance(linear)
    again = BinaryRelevance.from_arrays(model.arrays())
    np.testing.assert_array_equal(
        again.candidates(documents, 1).marginals(again.n_labels),
        model.candidates(documents, 1).marginals(model.n_labels),
    )
