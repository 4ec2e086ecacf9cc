import numpy as np
import pytest

from setrnn.tagging.calibration.temperature import LEAST_MISSING, fit_temperature, with_another_set
from synthetic import candidates, draw, outcomes_of


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7, 3.0])
def test_the_temperature_that_truth_was_drawn_by_is_found(temperature):
    log_probs = candidates(20_000)
    found = fit_temperature(log_probs, draw(log_probs, temperature))
    assert found == pytest.approx(temperature, rel=0.05)


def test_no_temperature_makes_the_truth_more_likely():
    log_probs = candidates(500)
    true_rank = draw(log_probs, 1.5)
    best = fit_temperature(log_probs, true_rank)

    def likelihood(temperature):
        scaled = outcomes_of(log_probs) / temperature
        scaled -= np.log(np.exp(scaled).sum(1, keepdims=True))
        return scaled[np.arange(len(scaled)), true_rank].sum()

    others = np.geomspace(0.1, 10, 50)
    assert likelihood(best) >= max(map(likelihood, others)) - 1e-3


def test_candidates_and_another_set_sum_to_one():
    outcomes = with_another_set(candidates(50))
    np.testing.assert_allclose(np.exp(outcomes).sum(1), 1)


def test_another_set_is_never_impossible():
    whole = np.log([[0.75, 0.25]])
    assert with_another_set(whole)[0, -1] == pytest.approx(np.log(LEAST_MISSING))
    above = with_another_set(np.log([[0.8, 0.2 + 1e-9]]))
    assert np.isfinite(above).all()


def test_candidates_that_are_not_there_change_nothing():
    log_probs = candidates(300)
    true_rank = draw(log_probs, 2.0)
    wider = np.pad(log_probs, ((0, 0), (0, 3)), constant_values=-np.inf)
    expected = fit_temperature(log_probs, true_rank)
    assert fit_temperature(wider, true_rank) == pytest.approx(expected)
