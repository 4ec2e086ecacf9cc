import numpy as np

from choices import as_sets, choice_of, random_distributions
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.expected_f1 import choose


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
