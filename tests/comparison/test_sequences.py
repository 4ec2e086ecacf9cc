"""Sums over the orders of a set, against all orders one by one."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest

from setrnn.comparison import sequences
from setrnn.comparison.sequences import choose_summed_documents, measure_set_sums, sum_orders
from setrnn.data.ragged import Ragged


def test_documents_are_chosen_by_size_and_cost_alone(monkeypatch):
    sets = Ragged.from_lists([list(range(size)) for size in (*range(10), *[3] * 50, *[7] * 50)])
    chosen = choose_summed_documents(sets)
    sizes = [int(sets.lengths[row]) for row in chosen]
    assert set(sizes) == set(range(2, 8))
    assert sizes.count(3) == sequences.N_SUMMED
    assert sizes.count(7) * factorial(7) <= sequences.MOST_ORDERS
    assert len(set(chosen.tolist())) == len(chosen)


def test_the_exact_sum_is_over_all_orders_one_by_one(taggers, small_prepared):
    system = taggers["set-rnn"].system
    test = small_prepared.split("test")
    labels = np.array([0, 1, 2, 3])
    found, log_probs = system.orders(test.tokens.rows(0, 1), labels[None], 24)
    assert {tuple(row) for row in found[0].tolist()} == set(permutations(labels.tolist()))
    exact = sum_orders(system, test.tokens.rows(0, 1), labels[None], 24)
    assert exact[0] == pytest.approx(np.log(np.exp(log_probs).sum()), abs=1e-3)


def test_a_search_finds_no_more_than_all_orders_and_all_where_it_is_wide_enough(
    taggers, small_prepared
):
    test = small_prepared.split("test")
    sums = measure_set_sums(taggers["set-rnn"].system, test.tokens, test.labels)
    sizes = test.labels.lengths[list(sums.documents)]
    exact = np.array(sums.exact)
    for width, found in zip(sums.widths, np.array(sums.found), strict=True):
        assert (found <= exact + 1e-3).all()
        is_wide = np.array([factorial(size) <= width for size in sizes])
        assert found[is_wide] == pytest.approx(exact[is_wide], abs=1e-3)
    assert (np.array(sums.found[0]) < exact).any()


def test_a_system_that_sums_exactly_has_nothing_to_compare(taggers, small_prepared):
    test = small_prepared.split("test")
    assert measure_set_sums(taggers["set-rnn-exact"].system, test.tokens, test.labels) is None
