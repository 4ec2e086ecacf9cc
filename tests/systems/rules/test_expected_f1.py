import numpy as np
import pytest

from brute_force import all_sets
from choices import as_sets, choice_of, expected_f1, random_distributions
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.expected_f1 import choose


@pytest.mark.parametrize(("n_labels", "sharpness"), [(4, 0.3), (4, 3.0), (5, 1.0)])
def test_no_set_has_a_higher_expected_f1(n_labels, sharpness):
    probs = random_distributions(0, 25, n_labels, sharpness)
    for row, members in zip(probs, as_sets(choose(choice_of(probs))), strict=True):
        best = max(expected_f1(row, each) for each in all_sets(n_labels))
        assert expected_f1(row, members) == pytest.approx(best, abs=1e-9)


def test_the_empty_set_competes_with_its_probability():
    probs = np.array([[0.6, 0.4, 0, 0], [0.4, 0.6, 0, 0]])
    assert as_sets(choose(choice_of(probs))) == [(), (0,)]


def test_a_set_larger_than_all_that_are_likely_can_be_best():
    probs = np.array([[0, 0.5, 0.5, 0]])
    assert as_sets(choose(choice_of(probs))) == [(0, 1)]


def test_shares_of_the_candidates_decide():
    """What the candidates leave out is taken to be spread like them."""
    choice = choice_of(random_distributions(3), n_sets=5)
    candidates = choice.candidates
    scaled = SetCandidates(candidates.labels, candidates.log_probs - 700)
    again = Choice(scaled, choice.limits, choice.set_log_probs)
    np.testing.assert_array_equal(choose(choice), choose(again))
