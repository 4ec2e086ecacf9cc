from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from setrnn.report.figures.style import spread


@given(st.lists(st.floats(0, 100), min_size=1, max_size=10))
def test_spread_keeps_the_order_the_gap_and_the_limits(wanted):
    placed = spread(wanted, gap=10, low=0, high=100)
    assert all(b - a >= 10 - 1e-6 for a, b in pairwise(sorted(placed)))
    assert placed.min() >= -1e-6
    assert placed.max() <= 100 + 1e-6
    for (a, x), (b, y) in combinations(zip(wanted, placed, strict=True), 2):
        if a < b:
            assert x < y
