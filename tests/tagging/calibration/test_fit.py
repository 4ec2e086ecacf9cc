import numpy as np
import pytest

from setrnn.tagging.calibration.fit import LEAST_FOR_ISOTONIC, fit_scaling, held_out
from setrnn.tagging.calibration.reliability import reliability
from synthetic import candidates, draw


def first_probs(scaling, log_probs):
    return np.exp(scaling.apply(log_probs, np.zeros((len(log_probs), 0)))[0][:, 0])


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
    after = reliability(first_probs(scaling, unseen), is_right).error
    assert after < before / 3


def test_isotonic_needs_documents():
    log_probs = candidates(LEAST_FOR_ISOTONIC - 1)
    assert fit_scaling(log_probs, bent(log_probs)).isotonic is None


def test_isotonic_is_mostly_left_out_where_a_temperature_is_enough():
    n_taken = 0
    for seed in range(10):
        log_probs = candidates(600, seed=seed)
        scaling = fit_scaling(log_probs, draw(log_probs, 2.0, seed))
        n_taken += scaling.isotonic is not None
        assert scaling.temperature == pytest.approx(2.0, rel=0.3)
    assert n_taken <= 2


def test_candidates_beyond_those_asked_for_count_as_another_set():
    log_probs = candidates(1000, n_candidates=8)
    true_rank = draw(log_probs, 1.5)
    few = fit_scaling(log_probs[:, :3], np.where(true_rank < 3, true_rank, -1), 3)
    assert fit_scaling(log_probs, true_rank, 3).as_dict() == few.as_dict()


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
