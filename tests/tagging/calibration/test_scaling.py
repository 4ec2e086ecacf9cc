import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.tagging.calibration.isotonic import Isotonic
from setrnn.tagging.calibration.scaling import Scaling
from synthetic import candidates

HARSH = Isotonic(np.array([0.1, 0.9]), np.array([0.01, 0.3]))
MILD = Isotonic(np.array([0.2, 0.8]), np.array([0.25, 0.9]))
NONE = np.zeros((200, 0))


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_candidates_and_another_set_stay_a_distribution_in_the_same_order(temperature):
    log_probs = candidates(200)
    missing = np.log(1 - np.exp(log_probs).sum(1, keepdims=True))
    for isotonic in (None, MILD):
        scaled, another = Scaling(5, temperature, isotonic).apply(log_probs, missing)
        total = np.exp(scaled).sum(1) + np.exp(another[:, 0])
        is_capped = (another[:, 0] == scaled[:, 0]) | (scaled[:, 1] == scaled[:, 0])
        np.testing.assert_allclose(total[~is_capped], 1)
        assert (total <= 1 + 1e-12).all(), "what is cut off falls to another set"
        assert is_capped.mean() < 0.5
        assert (np.diff(scaled, axis=1) <= 0).all()


@pytest.mark.parametrize("isotonic", [HARSH, MILD])
def test_the_first_has_the_accuracy_of_its_probability(isotonic):
    log_probs = candidates(200)
    plain, _ = Scaling(5, 1.7).apply(log_probs, NONE)
    scaled, _ = Scaling(5, 1.7, isotonic).apply(log_probs, NONE)
    np.testing.assert_allclose(np.exp(scaled[:, 0]), isotonic(np.exp(plain[:, 0])))
    assert (np.diff(scaled, axis=1) <= 0).all()
    assert (np.exp(scaled).sum(1) <= 1).all()


@given(st.lists(st.floats(1e-9, 1), min_size=2, max_size=8), st.floats(0.05, 20))
def test_the_order_never_changes(weights, temperature):
    log_probs = np.log(-np.sort(-np.array([weights])) / (sum(weights) * 1.01))
    scaled, _ = Scaling(3, temperature, HARSH).apply(log_probs, np.zeros((1, 0)))
    assert (np.diff(scaled, axis=1) <= 1e-12).all()


def test_temperature_one_changes_nothing():
    log_probs = candidates(200)
    scaled, others = Scaling(5, 1.0).apply(log_probs, log_probs[:, -1:] - 3)
    np.testing.assert_allclose(scaled, log_probs, atol=1e-9)
    missing = np.log(1 - np.exp(log_probs).sum(1, keepdims=True))
    expected = np.minimum(log_probs[:, -1:] - 3, missing)
    np.testing.assert_allclose(others, expected, atol=1e-9)


def test_the_first_gets_its_accuracy_and_the_others_share_the_rest_as_before():
    log_probs = np.log([[0.6, 0.2, 0.1]])
    scaled, others = Scaling(3, 1.0, MILD).apply(log_probs, np.log([[0.05]]))
    first = float(MILD(np.array([0.6]))[0])
    expected = [first, *(np.array([0.2, 0.1, 0.05]) * (1 - first) / 0.4)]
    np.testing.assert_allclose(np.exp([*scaled[0], others[0, 0]]), expected)


def test_more_candidates_than_it_was_fitted_with_change_nothing_for_the_first():
    log_probs = candidates(200, n_candidates=9)
    for scaling in (Scaling(4, 1.8), Scaling(4, 1.8, MILD)):
        few, _ = scaling.apply(log_probs[:, :4], NONE)
        many, _ = scaling.apply(log_probs, NONE)
        assert (many[:, :4] == few).all()
        as_other = scaling.apply(log_probs[:, :4], log_probs[:, 4:])[1]
        assert (many[:, 4:] == as_other).all()


def test_a_set_that_is_no_candidate_has_at_most_what_is_left_out():
    scaled, others = Scaling(2, 2.0).apply(np.log([[0.7, 0.2]]), np.log([[0.5, 1e-5]]))
    left = 1 - np.exp(scaled).sum()
    assert np.exp(others[0, 0]) == pytest.approx(left)
    assert 0 < np.exp(others[0, 1]) < left


def test_impossible_sets_stay_impossible():
    log_probs = np.array([[np.log(0.5), -np.inf]])
    scaled, others = Scaling(2, 1.5, MILD).apply(log_probs, np.array([[-np.inf]]))
    assert scaled[0, 1] == others[0, 0] == -np.inf
    assert np.isfinite(scaled[0, 0])
