import numpy as np
import pytest
from choices import all_sets, as_sets, choice_of, expected_f1
from scipy.special import expit

from setrnn.baselines.br import most_probable_products
from setrnn.decoding import Choice, Limits, no_limits
from setrnn.decoding.expected_f1 import choose
from setrnn.decoding.products import ProductCandidates


def products(logits, n_sets=2):
    found = most_probable_products(logits, n_sets)
    return ProductCandidates(found.labels, found.log_probs, logits)


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
