import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from brute_force import all_sets, found_sets, product_probability
from setrnn.decoding.products import most_probable_products, product_log_probs

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


@given(logits_of_documents)
@settings(deadline=None)
def test_given_sets_have_the_probability_of_brute_force(logits):
    n, n_labels = logits.shape
    sets = all_sets(n_labels)
    rows = np.full((n, len(sets), n_labels), -1, dtype=np.int32)
    for rank, labels in enumerate(sets):
        rows[:, rank, : len(labels)] = labels
    found = np.exp(product_log_probs(logits, rows))
    for document in range(n):
        truth = [product_probability(logits[document], labels) for labels in sets]
        np.testing.assert_allclose(found[document], truth, rtol=1e-6)
