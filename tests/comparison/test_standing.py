"""Which system is best, and whether that is more than chance."""

import numpy as np
import pytest
from small_comparisons import A, B, C, drawn_accuracy

from setrnn.comparison.statistics import holm
from setrnn.metrics import LOWER_IS_BETTER, MEASURES


@pytest.mark.parametrize("measure", MEASURES)
def test_the_best_of_clearly_different_systems_stands(measure):
    numbers = np.arange(300)
    made = drawn_accuracy(b=numbers < 200, a=numbers < 290, c=numbers < 50)
    standing = made.standing([B, A, C], measure)
    assert standing.best == A
    assert standing.stands
    assert not standing.tied
    assert set(standing.p) == {B, C}
    assert all(p < 0.05 for p in standing.p.values())
    means = {entry: made.mean(entry, measure) for entry in (A, B, C)}
    extreme = min if measure in LOWER_IS_BETTER else max
    assert extreme(means, key=means.get) == A


def test_of_two_alike_neither_stands():
    numbers = np.arange(100)
    made = drawn_accuracy(a=numbers < 80, b=numbers < 80, c=numbers < 10)
    standing = made.standing([A, B, C], "subset_accuracy")
    assert not standing.stands
    assert standing.tied == {B}
    assert standing.p[B] == 1


@pytest.mark.parametrize(("n_differing", "least"), [(0, 1), (1, 1), (4, 0.125), (6, 0.03125)])
def test_few_documents_that_differ_show_no_more_than_a_sign_test(n_differing, least):
    numbers = np.arange(60)
    made = drawn_accuracy(a=numbers < 30 + n_differing, b=numbers < 30, draws=999)
    for measure in MEASURES:
        assert made.difference(A, B, measure).p >= least
    assert not (made.standing([A, B], "subset_accuracy").stands and least > 0.05)


def test_standing_is_corrected_for_many():
    """A difference that one test finds is not found among many."""
    numbers = np.arange(200)
    systems = {"a": numbers < 107, **dict.fromkeys("bcdefghij", numbers < 101)}
    made = drawn_accuracy(**systems, draws=999)
    alone = made.difference(A, B, "subset_accuracy").p
    assert alone < 0.05
    standing = made.standing(list(made.entries), "subset_accuracy")
    assert standing.p[B] >= 0.05
    assert not standing.stands
    pairs = made.pairs(list(made.entries), "subset_accuracy")
    assert len(pairs) == 45
    assert pairs[A, B].mean == made.difference(A, B, "subset_accuracy").mean
    expected = holm([made.difference(*pair, "subset_accuracy").p for pair in pairs])
    assert [difference.p for difference in pairs.values()] == expected


def test_holm_corrects_a_textbook_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1, 1]
