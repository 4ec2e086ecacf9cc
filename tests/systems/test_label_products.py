"""The best sets of independent labels; `classical/test_probabilities.py` has the brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit

from brute_force import all_sets, found_sets, product_probability
from choices import as_sets, choice_of, expected_f1
from setrnn.systems.limits import Limits, no_limits
from setrnn.systems.products import most_probable_products
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.expected_f1 import choose

all_logits = st.tuples(st.integers(1, 4), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.floats(-8, 8, width=32))
)


@given(all_logits, st.integers(1, 80))
@settings(deadline=None)
def test_the_best_sets_are_those_of_brute_force(logits, n_sets):
    n_labels = logits.shape[1]
    candidates = most_probable_products(logits, n_sets)
    for document, row in enumerate(logits):
        truth = {labels: product_probability(row, labels) for labels in all_sets(n_labels)}
        found = found_sets(candidates, document)
        assert found == pytest.approx({labels: truth[labels] for labels in found}, rel=1e-6)
        best = sorted(truth.values(), reverse=True)[: min(n_sets, 2**n_labels)]
        np.testing.assert_allclose(list(found.values()), best, rtol=1e-6)


def test_many_labels_and_few_sets_are_exact():
    """The 5 best of 2^300: checked against the best that turning one or two labels gives."""
    logits = np.random.default_rng(0).normal(size=(3, 300)).astype(np.float32)
    candidates = most_probable_products(logits, 5)
    for document in range(3):
        cost = np.sort(np.abs(logits[document].astype(float)))[:6]
        totals = sorted(sum(cost[list(turned)]) for turned in all_sets(6))[:5]
        below_best = candidates.log_probs[document, 0] - candidates.log_probs[document]
        np.testing.assert_allclose(below_best, totals, atol=1e-6)


def test_extreme_log_odds_stay_finite():
    candidates = most_probable_products(np.array([[300.0, -300.0, 0.5]], np.float32), 8)
    assert np.isfinite(candidates.log_probs).all()
    assert candidates.set_at(0, 0) == [0, 2]


@pytest.mark.parametrize("spread", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("limits", [Limits(), Limits(required=["e"]), Limits(min_labels=3)])
def test_the_closed_form_finds_the_highest_expected_f1(spread, limits):
    logits = (spread * np.random.default_rng(0).standard_normal((20, 5)) - 1).astype(np.float32)
    probs = np.array([[product_probability(row, s) for s in all_sets(5)] for row in logits])
    wanted = choice_of(probs, limits)
    found = most_probable_products(logits, 2)
    chosen = choose(Choice(found, wanted.limits, wanted.set_log_probs))
    for row, members, best in zip(probs, as_sets(chosen), as_sets(choose(wanted)), strict=True):
        assert expected_f1(row, members) == pytest.approx(expected_f1(row, best), abs=1e-7)


def test_many_labels_agree_with_drawn_sets():
    """The expected F1 of the chosen sets, against those of twenty thousand drawn ones."""
    random = np.random.default_rng(1)
    logits = (random.standard_normal((3, 400)) * 2 - 5).astype(np.float32)
    found = most_probable_products(logits, 2)
    chosen = choose(Choice(found, no_limits(400), lambda rows, sets: sets))
    for row, members in zip(expit(logits), as_sets(chosen), strict=True):
        drawn = random.random((20_000, 400)) < row
        by_rank = np.argsort(-row)

        def mean_f1(labels, drawn=drawn):
            both = drawn[:, labels].sum(axis=1)
            return float((2 * both / (len(labels) + drawn.sum(axis=1))).mean())

        values = {k: mean_f1(by_rank[:k]) for k in range(1, 40)}
        assert mean_f1(list(members)) >= max(values.values()) - 0.004
