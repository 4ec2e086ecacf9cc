"""The best sets of independent labels; `classical/test_probabilities.py` has the brute force."""

import numpy as np
from scipy.special import expit

from brute_force import all_sets
from choices import as_sets
from setrnn.systems.limits import no_limits
from setrnn.systems.products import most_probable_products
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.expected_f1 import choose


def test_many_labels_and_few_sets_are_exact():
    """The 5 best of 2^300: checked against the best that turning one or two labels gives."""
    logits = np.random.default_rng(0).normal(size=(3, 300)).astype(np.float32)
    candidates = most_probable_products(logits, 5)
    for document in range(3):
        cost = np.sort(np.abs(logits[document].astype(float)))[:6]
        totals = sorted(sum(cost[list(turned)]) for turned in all_sets(6))[:5]
        below_best = candidates.log_probs[document, 0] - candidates.log_probs[document]
        np.testing.assert_allclose(below_best, totals, atol=1e-6)


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
