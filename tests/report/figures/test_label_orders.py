import numpy as np
import pytest

from setrnn.report.figures.orders import average_ranks, find_companions, measure_agreement

SETS = [np.flatnonzero(row).tolist() for row in np.random.default_rng(0).random((400, 9)) < 0.5]


def test_orders_in_descending_order_of_frequency_agree_fully_and_reversed_ones_never():
    assert measure_agreement(SETS) == 1
    assert measure_agreement([row[::-1] for row in SETS]) == 0


def test_agreement_counts_pairs_not_documents():
    # Three pairs of the first, one of them falling; one of the second.
    assert measure_agreement([[1, 2, 0], [0, 1], [5], []]) == 2 / 4


def test_without_pairs_nothing_is_said():
    assert measure_agreement([[], [3]]) is None
    assert np.isnan(average_ranks([[], [3]], 4)).all()


def test_ranks_of_a_fixed_order_go_from_first_to_last():
    assert average_ranks([[2, 0, 1]] * 5, 4)[:3].tolist() == [0.5, 1, 0]
    ranks = average_ranks([[0, 1], [1, 0, 2], [3]], 4)
    assert ranks[:3] == pytest.approx([0.25, 0.5, 1])
    assert np.isnan(ranks[3])


def test_companions_are_those_that_share_documents_most_often():
    truth = [[3], [3], [3], [0, 2], [1, 2], [2, 1], [0, 1, 2]]
    assert find_companions(truth, 5, most=2) == [1, 2]
    assert find_companions(truth, 5, most=12) == [0, 1, 2]
