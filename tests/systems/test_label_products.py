import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit

from brute_force import all_sets as every_set
from brute_force import found_sets, product_probability
from choices import all_sets, as_sets, choice_of, expected_f1
from setrnn.systems.empty_set import NEVER
from setrnn.systems.limits import Limits, no_limits
from setrnn.systems.products import (
    most_probable_products,
    product_log_probs,
)
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.expected_f1 import choose


def products(logits):
    return most_probable_products(logits, 2)


def enumerated(logits):
    """p of every set, as the product over all labels: (n, 2^L)."""
    probs = expit(logits.astype(np.float64))
    columns = [
        np.prod([probs[:, each] if each in s else 1 - probs[:, each] for each in range(5)], axis=0)
        for s in all_sets(5)
    ]
    return np.stack(columns, axis=1)


@pytest.fixture(params=[0.5, 2.0, 6.0])
def logits(request):
    random = np.random.default_rng(0)
    return (request.param * random.standard_normal((20, 5)) - 1).astype(np.float32)


def test_labels_and_sizes_are_those_of_all_products(logits):
    found = products(logits).label_size_probs(5, also=range(5))
    truth = choice_of(enumerated(logits)).candidates.label_size_probs(5, also=range(5))
    np.testing.assert_array_equal(found.labels, truth.labels)
    np.testing.assert_allclose(found.probs[:, :, :5], truth.probs, atol=1e-9)
    np.testing.assert_allclose(found.empty, truth.empty, atol=1e-9)


def test_marginals_are_exact_and_nothing_is_missing(logits):
    whole = choice_of(enumerated(logits)).candidates
    np.testing.assert_allclose(products(logits).marginals(5), whole.marginals(5), atol=1e-6)
    assert not products(logits).missing_mass().any()


def test_the_probability_of_any_set_is_known(logits):
    whole = choice_of(enumerated(logits)).candidates
    found = products(logits).log_probs_of(whole.labels)
    np.testing.assert_allclose(found, whole.log_probs, atol=1e-5)
    rows = np.array([3, 1])
    taken = products(logits).take(rows).log_probs_of(whole.labels[rows])
    np.testing.assert_array_equal(taken, found[rows])


@pytest.mark.parametrize("limits", [Limits(), Limits(required=["e"]), Limits(min_labels=3)])
def test_the_closed_form_finds_the_highest_expected_f1(logits, limits):
    probs = enumerated(logits)
    wanted = choice_of(probs, limits)
    chosen = choose(Choice(products(logits), wanted.limits, wanted.set_log_probs))
    for row, members, best in zip(probs, as_sets(chosen), as_sets(choose(wanted)), strict=True):
        assert expected_f1(row, members) == pytest.approx(expected_f1(row, best), abs=1e-7)


def test_many_labels_agree_with_drawn_sets():
    """The expected F1 of the chosen sets, against those of a hundred thousand drawn ones."""
    random = np.random.default_rng(1)
    logits = (random.standard_normal((3, 400)) * 2 - 5).astype(np.float32)
    chosen = choose(Choice(products(logits), no_limits(400), lambda rows, sets: sets))
    for row, members in zip(expit(logits), as_sets(chosen), strict=True):
        drawn = random.random((20_000, 400)) < row
        by_rank = np.argsort(-row)

        def mean_f1(labels, drawn=drawn):
            both = drawn[:, labels].sum(axis=1)
            return float((2 * both / (len(labels) + drawn.sum(axis=1))).mean())

        values = {k: mean_f1(by_rank[:k]) for k in range(1, 40)}
        assert mean_f1(list(members)) >= max(values.values()) - 0.004


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
            labels: product_probability(logits[document], labels) for labels in every_set(n_labels)
        }
        found = found_sets(candidates, document)
        assert len(found) == min(n_sets, 2**n_labels)
        for labels, probability in found.items():
            assert probability == pytest.approx(truth[labels], rel=1e-6)
        best = sorted(truth.values(), reverse=True)[: len(found)]
        np.testing.assert_allclose(list(found.values()), best, rtol=1e-6)


@given(logits_of_documents, st.integers(1, 10), st.integers(0, 10))
@settings(deadline=None)
def test_asking_for_more_sets_adds_behind(logits, n_sets, n_more):
    few = most_probable_products(logits, n_sets)
    many = most_probable_products(logits, n_sets + n_more)
    k = few.log_probs.shape[1]
    np.testing.assert_allclose(many.log_probs[:, :k], few.log_probs, rtol=1e-9, atol=1e-12)


@given(logits_of_documents, st.integers(1, 80))
@settings(deadline=None)
def test_sets_that_are_not_empty_share_the_probability_of_the_empty_one(logits, n_sets):
    n, n_labels = logits.shape
    candidates = most_probable_products(logits, n_sets, None, NEVER)
    marginals = candidates.marginals(n_labels)
    sizes = candidates.label_size_probs(n_labels)
    assert not sizes.empty.any()
    for document in range(n):
        truth = {
            labels: product_probability(logits[document], labels)
            for labels in every_set(n_labels)
            if labels
        }
        total = sum(truth.values())
        found = found_sets(candidates, document)
        assert len(found) == min(n_sets, 2**n_labels - 1)
        best = sorted(truth.values(), reverse=True)[: len(found)]
        np.testing.assert_allclose(list(found.values()), np.array(best) / total, rtol=1e-5)
        for label in range(n_labels):
            expected = sum(p for labels, p in truth.items() if label in labels) / total
            assert marginals[document, label] == pytest.approx(expected, rel=1e-4)
        of_sizes = sizes.probs[document].sum(axis=1)
        expected = marginals[document, sizes.labels[document]]
        np.testing.assert_allclose(of_sizes, expected, rtol=1e-4)
    given_sets = np.exp(product_log_probs(logits, candidates.labels, NEVER))
    np.testing.assert_allclose(given_sets, np.exp(candidates.log_probs), rtol=1e-6)
    assert (product_log_probs(logits, np.full((n, 1, 2), -1), NEVER) == -np.inf).all()


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
        totals = sorted(sum(cost[list(turned)]) for turned in every_set(6))[:5]
        below_best = candidates.log_probs[document, 0] - candidates.log_probs[document]
        np.testing.assert_allclose(below_best, totals, atol=1e-6)


@given(logits_of_documents)
@settings(deadline=None)
def test_given_sets_have_the_probability_of_brute_force(logits):
    n, n_labels = logits.shape
    sets = every_set(n_labels)
    rows = np.full((n, len(sets), n_labels), -1, dtype=np.int32)
    for rank, labels in enumerate(sets):
        rows[:, rank, : len(labels)] = labels
    found = np.exp(product_log_probs(logits, rows))
    for document in range(n):
        truth = [product_probability(logits[document], labels) for labels in sets]
        np.testing.assert_allclose(found[document], truth, rtol=1e-6)
