from hypothesis import given
from hypothesis import strategies as st

from setrnn.report.series.frontier import frontier


def test_the_frontier_of_known_points():
    costs, qualities = [1, 2, 3, 4, 5], [0.5, 0.4, 0.7, 0.7, 0.9]
    assert frontier(costs, qualities) == [0, 2, 4]


def test_the_best_of_equal_cost_beats_the_others():
    assert frontier([1, 1, 1], [0.3, 0.8, 0.8]) == [1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_none_on_the_frontier_is_beaten_and_all_others_are(points):
    found = frontier([x for x, _ in points], [y for _, y in points])
    kept = [points[place] for place in found]
    for x, y in kept:
        assert not any((a <= x and b > y) or (a < x and b >= y) for a, b in points)
    for place, (x, y) in enumerate(points):
        assert place in found or any(a <= x and b >= y for a, b in kept)
