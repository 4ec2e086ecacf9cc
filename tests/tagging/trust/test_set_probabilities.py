import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.tagging.trust import Calibration
from setrnn.tagging.trust.acceptance import reliability
from setrnn.tagging.trust.sets import (
    MIN_MISSING,
    Isotonic,
    Scaling,
    fit_isotonic,
    fit_scaling,
    fit_temperature,
    held_out,
    keep_better,
    with_another_set,
)
from synthetic import candidates, draw


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7, 3.0])
def test_the_temperature_that_truth_was_drawn_by_is_found(temperature):
    log_probs = candidates(20_000)
    found = fit_temperature(log_probs, draw(log_probs, temperature))
    assert found == pytest.approx(temperature, rel=0.05)


def test_another_set_is_never_impossible():
    np.testing.assert_allclose(np.exp(with_another_set(candidates(50))).sum(1), 1)
    whole = np.log([[0.75, 0.25]])
    assert with_another_set(whole)[0, -1] == pytest.approx(np.log(MIN_MISSING))
    above = with_another_set(np.log([[0.8, 0.2 + 1e-9]]))
    assert np.isfinite(above).all()


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_a_higher_probability_never_gets_a_lower_accuracy(rows):
    probs = np.array([row[0] for row in rows])
    is_right = np.array([row[1] for row in rows])
    fitted = fit_isotonic(probs, is_right)
    values = fitted(np.linspace(0, 1, 101))
    assert (np.diff(values) >= 0).all()
    assert (values > 0).all()
    assert (values < 1).all()


def test_a_known_curve_is_found():
    rng = np.random.default_rng(0)
    probs = rng.random(50_000)
    fitted = fit_isotonic(probs, rng.random(len(probs)) < probs**2)
    grid = np.linspace(0.05, 0.95, 19)
    assert np.abs(fitted(grid) - grid**2).max() < 0.03


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


def bent(log_probs, seed=0):
    """Truth that no temperature explains: the surest sets are right three times in five."""
    true_rank = draw(log_probs, seed=seed)
    is_fooled = np.random.default_rng(seed + 1).random(len(true_rank)) < 0.4
    return np.where(is_fooled & (log_probs[:, 0] > np.log(0.6)), -1, true_rank)


def test_isotonic_is_taken_where_it_helps_unseen_documents():
    log_probs = candidates(4000)
    scaling = fit_scaling(log_probs, bent(log_probs))
    assert scaling.isotonic is not None
    unseen = candidates(4000, seed=9)
    is_right = bent(unseen, seed=10) == 0
    before = reliability(np.exp(unseen[:, 0]), is_right).error
    after = reliability(scaling.first_probs(unseen), is_right).error
    assert after < before / 3


def test_a_scaling_that_is_worse_on_other_documents_is_not_used():
    """Few documents of a perfect model: what is fitted to them is noise."""
    n_kept = 0
    for seed in range(20):
        log_probs = candidates(100, seed=seed)
        true_rank = draw(log_probs, seed=seed)
        new = fit_scaling(log_probs, true_rank)
        found = keep_better(None, new, log_probs, true_rank)
        assert found is new or found.temperature == 1
        n_kept += found is not new
    assert n_kept > 10
    log_probs = candidates(2000)
    true_rank = draw(log_probs, 2.0)
    new = fit_scaling(log_probs, true_rank)
    assert keep_better(None, new, log_probs, true_rank) is new
    assert keep_better(Scaling(16, 0.3), new, log_probs, true_rank) is new


def test_every_document_is_held_out_once_and_has_no_part_in_its_scaling():
    log_probs = candidates(103)
    true_rank = draw(log_probs, 1.5)
    scaling = fit_scaling(log_probs, true_rank)
    n_times = np.zeros(103, dtype=int)
    for is_out, fitted in held_out(scaling, log_probs, true_rank):
        n_times += is_out
        other = np.where(is_out, -1, true_rank)
        again = [each for out, each in held_out(scaling, log_probs, other) if (out == is_out).all()]
        assert again == [fitted]
    assert (n_times == 1).all()


def test_a_rule_has_its_own_scaling_or_that_of_its_source():
    own, of_source = Scaling(3, 2.0), Scaling(3, 0.7)
    found = Calibration(10, scalings={"f1": own, "sets": of_source})
    assert found.scaling_of("f1", "sets") is own
    assert found.scaling_of("set", "sets") is of_source
    assert found.scaling_of("sequence", "sequences") is None
