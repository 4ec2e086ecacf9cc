import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from brute_force import all_sets
from choices import as_sets, padded_sets, whole_distribution
from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import list_columns, sum_over_sets
from setrnn.systems.closure import Closure, close_candidates, close_sets
from setrnn.systems.limits import no_limits


def random_hierarchy(seed, n, most_parents=3):
    """All labels above each of n labels."""
    random = np.random.default_rng(seed)
    order = random.permutation(n)
    above = [set() for _ in range(n)]
    for place, label in enumerate(order):
        n_parents = min(place, random.integers(0, most_parents + 1))
        for parent in random.choice(order[:place], n_parents, False):
            above[label] |= {int(parent)} | above[parent]
    return above, Closure(Ragged.from_lists([sorted(each) for each in above]).padded(min_width=1))


def closed(n, above):
    return [s for s in all_sets(n) if all(above[label] <= set(s) for label in s)]


def find_largest_sums(values, closure):
    """The closed sets, found from the best sets that need not be closed."""
    limits = replace(no_limits(values.shape[1]), closure=closure)
    return as_sets(close_sets(list_columns(values >= 0), limits, partial(sum_over_sets, values)))


@pytest.mark.parametrize("seed", range(8))
def test_the_best_closed_sets_of_a_random_tree_equal_brute_force(seed):
    above, closure = random_hierarchy(seed, 7, most_parents=1)
    values = np.random.default_rng(seed).standard_normal((40, 7))
    for row, found in zip(values, find_largest_sums(values, closure), strict=True):
        best = max(closed(7, above), key=lambda each: row[list(each)].sum())
        assert found == best


@pytest.mark.parametrize("seed", range(8))
def test_with_several_parents_most_closed_sets_are_the_best(seed):
    above, closure = random_hierarchy(seed, 7)
    values = np.random.default_rng(seed).standard_normal((40, 7))
    n_best = 0
    for row, found in zip(values, find_largest_sums(values, closure), strict=True):
        assert found in closed(7, above)
        best = max(row[list(each)].sum() for each in closed(7, above))
        n_best += row[list(found)].sum() == pytest.approx(best)
    assert n_best >= 35


@pytest.mark.parametrize("seed", range(4))
def test_closing_and_pruning_change_as_little_as_possible(seed):
    above, closure = random_hierarchy(seed, 5)
    sets, good = all_sets(5), closed(5, above)
    up, down = (as_sets(f(padded_sets(sets, 5))) for f in (closure.close, closure.prune))
    for s, more, fewer in zip(sets, up, down, strict=True):
        assert more == min((each for each in good if set(s) <= set(each)), key=len)
        assert fewer == max((each for each in good if set(each) <= set(s)), key=len)


def test_sets_of_a_deep_hierarchy_are_closed_in_milliseconds():
    n = 250
    closure = Closure(Ragged.from_lists([range(label) for label in range(n)]).padded(min_width=1))
    assert [closure.parents(label) for label in (0, 1, 200)] == [[], [0], [199]]
    random = np.random.default_rng(0)
    start = time.perf_counter()
    sets = closure.close(random.integers(0, n, (512, 3), dtype=np.int32))
    assert closure.fit(sets).all()
    assert (closure.prune(sets) == sets).all()
    values = random.standard_normal((32, n))
    sums = np.maximum(values.cumsum(axis=1).max(axis=1), 0)  # a closed set is the start of the row
    found = [
        row[list(each)].sum()
        for row, each in zip(values, find_largest_sums(values, closure), strict=True)
    ]
    np.testing.assert_allclose(found, sums, atol=1e-9)
    assert time.perf_counter() - start < 5  # with a comparison per ancestor: 20 seconds


def test_closed_candidates_are_distinct_and_have_their_own_probability():
    above, closure = random_hierarchy(1, 4)
    probs = np.random.default_rng(0).dirichlet(np.ones(16), 5)
    every = whole_distribution(probs)
    found = close_candidates(every, closure, every.log_probs_of)
    for document, row in enumerate(probs):
        is_set = found.log_probs[document] > -np.inf
        sets = as_sets(found.labels[document][is_set])
        assert sorted(sets) == sorted(closed(4, above))
        expected = [row[all_sets(4).index(each)] for each in sets]
        np.testing.assert_allclose(np.exp(found.log_probs[document][is_set]), expected)
        assert expected == sorted(expected, reverse=True)
