import numpy as np
import pytest

from brute_force import all_sets
from choices import as_sets, padded_sets
from setrnn.data.ragged import Ragged
from setrnn.systems.closure import Closure
from setrnn.systems.rules.closed_sets import find_best_closed


def random_hierarchy(seed, n):
    """All labels above each of n labels, with several parents."""
    random = np.random.default_rng(seed)
    order = random.permutation(n)
    above = [set() for _ in range(n)]
    for place, label in enumerate(order):
        for parent in random.choice(order[:place], min(place, random.integers(0, 4)), False):
            above[label] |= {int(parent)} | above[parent]
    return above, Closure(Ragged.from_lists([sorted(each) for each in above]).padded(min_width=1))


def closed(n, above):
    return [s for s in all_sets(n) if all(above[label] <= set(s) for label in s)]


@pytest.mark.parametrize("seed", range(16))
def test_the_best_closed_set_of_a_random_hierarchy_equals_brute_force(seed):
    """With sizes and without, and with required labels."""
    n = 7
    above, closure = random_hierarchy(seed, n)
    values = np.random.default_rng(seed).standard_normal((n + 1, n))
    required = sorted({1} | above[1]) if seed % 2 else []
    sets = [s for s in closed(n, above) if set(required) <= set(s)]
    total, row, found = find_best_closed(closure, range(n), values[:1], None, required)
    assert row == 0
    assert total == pytest.approx(max(values[0][list(s)].sum() for s in sets))
    assert tuple(sorted(found)) in sets
    sizes = [(size, size) for size in range(n + 1)]
    total, row, found = find_best_closed(closure, range(n), values, sizes, required)
    assert len(found) == row
    assert total == pytest.approx(max(values[len(s)][list(s)].sum() for s in sets))


@pytest.mark.parametrize("seed", range(4))
def test_closing_and_pruning_change_as_little_as_possible(seed):
    above, closure = random_hierarchy(seed, 5)
    sets, good = all_sets(5), closed(5, above)
    up, down = (as_sets(f(padded_sets(sets, 5))) for f in (closure.close, closure.prune))
    for s, more, fewer in zip(sets, up, down, strict=True):
        assert more == min((each for each in good if set(s) <= set(each)), key=len)
        assert fewer == max((each for each in good if set(each) <= set(s)), key=len)
