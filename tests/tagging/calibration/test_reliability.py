import numpy as np
import pytest

from setrnn.tagging.calibration.reliability import reliability


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    probs = rng.random(n)
    return probs, rng.random(n) < probs


def test_perfectly_calibrated_probabilities_have_a_small_error():
    assert reliability(*drawn(200_000)).error < 0.005


def test_the_error_of_what_is_always_too_sure_is_how_much():
    rng = np.random.default_rng(1)
    probs = 0.5 + rng.random(20_000) / 2
    is_right = rng.random(len(probs)) < probs - 0.3
    assert reliability(probs, is_right).error == pytest.approx(0.3, abs=0.01)


def test_bins_hold_about_the_same_number_of_documents():
    found = reliability(*drawn(3000))
    assert found.n_documents.tolist() == [200] * 15
    assert (np.diff(found.mean_probability) > 0).all()
    assert found.spread.sum() == 3000


def test_the_order_of_documents_changes_nothing_also_with_ties():
    probs, is_right = drawn(500)
    probs = probs.round(1)
    order = np.random.default_rng(3).permutation(500)
    one, other = reliability(probs, is_right), reliability(probs[order], is_right[order])
    assert one.error == pytest.approx(other.error, abs=1e-12)
    assert (one.n_documents == other.n_documents).all()


def test_one_probability_is_one_bin():
    found = reliability(np.full(100, 0.7), np.arange(100) < 60)
    assert found.n_documents.tolist() == [100]
    assert found.error == pytest.approx(0.1)


def test_a_handful_of_documents_will_do():
    found = reliability(np.array([0.2]), np.array([True]))
    assert found.error == pytest.approx(0.8)
