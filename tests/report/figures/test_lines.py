from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.report.figures.lines import Box, place_labels, sample_path, spread


@given(st.lists(st.floats(0, 100), min_size=1, max_size=10))
def test_spread_keeps_the_order_the_gap_and_the_limits(wanted):
    placed = spread(wanted, gap=10, low=0, high=100)
    assert all(b - a >= 10 - 1e-6 for a, b in pairwise(sorted(placed)))
    assert placed.min() >= -1e-6
    assert placed.max() <= 100 + 1e-6
    for (a, x), (b, y) in combinations(zip(wanted, placed, strict=True), 2):
        if a < b:
            assert x < y


def test_spread_leaves_those_that_are_apart():
    assert spread([50, 10, 30], 10, 0, 100).tolist() == [50, 10, 30]


def test_spread_moves_two_at_one_height_by_half_a_gap_each():
    assert spread([40, 40], 10, 0, 100) == pytest.approx([35, 45])


def overlap(one, other):
    return (
        min(one.right, other.right) > max(one.left, other.left)
        and min(one.top, other.top) > max(one.bottom, other.bottom)
    )  # fmt: skip


def test_labels_cover_neither_each_other_nor_what_is_there():
    random = np.random.default_rng(0)
    points = [random.uniform((60, 60), (240, 140), (2, 2)) for _ in range(12)]
    points[1] = points[0]  # two systems at one place
    dots = [Box.around(x, y, 3, 3) for pair in points for x, y in pair]
    inside = Box(0, 0, 300, 200)
    places = place_labels(points, [(60, 10)] * 12, inside, dots)
    assert None not in places
    boxes = [place.box for place in places]
    assert not any(overlap(a, b) for a, b in combinations(boxes, 2))
    assert not any(overlap(box, dot) for box in boxes for dot in dots)
    assert all(inside.holds(box) for box in boxes)
    for place, other in combinations(places, 2):  # no line through a name
        assert not any(overlap(Box.around(x, y, 0.1, 0.1), place.box) for x, y in other.leader)


def test_a_label_without_room_is_left_out():
    assert place_labels([np.array([[5.0, 5.0]])], [(60, 10)], Box(0, 0, 10, 10), []) == [None]


def test_points_along_a_line_are_at_most_two_steps_apart():
    path = sample_path(np.array([(0.0, 0.0), (30.0, 0.0), (30.0, 40.0)]), step=3)
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [30, 40]
    assert np.hypot(*np.diff(path, axis=0).T).max() < 6
