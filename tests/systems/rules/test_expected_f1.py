import numpy as np
import pytest

from choices import all_sets, as_sets, choice_of, expected_f1, known, random_distributions
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.limits import Limits
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.expected_f1 import choose


def best_value(probs, is_fitting=lambda members: True):
    n_labels = len(probs).bit_length() - 1
    return max(expected_f1(probs, each) for each in all_sets(n_labels) if is_fitting(each))


def assert_best(probs, chosen, is_fitting=lambda members: True):
    for row, members in zip(probs, as_sets(chosen), strict=True):
        assert is_fitting(members)
        assert expected_f1(row, members) == pytest.approx(best_value(row, is_fitting), abs=1e-9)


@pytest.mark.parametrize(("n_labels", "sharpness"), [(4, 0.3), (4, 3.0), (5, 1.0)])
def test_no_set_has_a_higher_expected_f1(n_labels, sharpness):
    probs = random_distributions(0, 25, n_labels, sharpness)
    assert_best(probs, choose(choice_of(probs)))


def test_the_empty_set_competes_with_its_probability():
    probs = np.array([[0.6, 0.4, 0, 0], [0.4, 0.6, 0, 0]])
    assert as_sets(choose(choice_of(probs))) == [(), (0,)]


def test_a_set_larger_than_all_that_are_likely_can_be_best():
    probs = np.array([[0, 0.5, 0.5, 0]])
    assert as_sets(choose(choice_of(probs))) == [(0, 1)]


@pytest.mark.parametrize(
    ("limits", "is_fitting"),
    [
        (Limits(min_labels=3), lambda s: len(s) >= 3),
        (Limits(max_labels=1), lambda s: len(s) <= 1),
        (Limits(required=["c"]), lambda s: 2 in s),
        (Limits(required=["a", "d"], max_labels=3), lambda s: {0, 3} <= set(s) and len(s) <= 3),
        (Limits(forbidden=["a"], min_labels=1), lambda s: 0 not in s and s),
    ],
)
def test_within_limits_no_set_has_a_higher_expected_f1(limits, is_fitting):
    probs = random_distributions(1, 25)
    assert_best(probs, choose(choice_of(probs, limits)), is_fitting)


def test_only_seen_sets_are_compared_where_asked():
    seen = [[], [0], [1, 2], [0, 1, 3]]
    probs = random_distributions(2, 25)
    limits = known(Limits(only_seen=True), 4, seen)
    assert_best(probs, choose(choice_of(probs, limits)), lambda s: list(s) in seen)


def test_shares_of_the_candidates_decide():
    """What the candidates leave out is taken to be spread like them."""
    choice = choice_of(random_distributions(3), n_sets=5)
    candidates = choice.candidates
    scaled = SetCandidates(candidates.labels, candidates.log_probs - 700)
    again = Choice(scaled, choice.limits, choice.set_log_probs)
    np.testing.assert_array_equal(choose(choice), choose(again))
