"""Labels accepted by themselves: right as often as promised, for each label."""

import numpy as np
import pytest

from setrnn.tagging.acceptance import LEAST_ACCEPTED, LabelAcceptance, fit_label_acceptance

TARGET, CONFIDENCE = 0.9, 0.9


def draw(seed, n=1_500):
    """Probabilities of a safe, a doubtful and two rare labels, and what is true."""
    random = np.random.default_rng(seed)
    probs = random.beta(0.25, 0.4, (n, 4)).astype(np.float32)
    probs[:, 1] *= 0.8
    probs[:, 2:] *= random.random((n, 2)) < 0.02
    return probs, random.random(probs.shape) < probs


def fit(probs, is_label):
    return fit_label_acceptance(probs, probs, probs, is_label, TARGET, CONFIDENCE)


def test_a_safe_label_is_accepted_and_a_doubtful_one_is_not():
    found = fit(*draw(0))
    assert LEAST_ACCEPTED <= found.thresholds[0] <= 1
    assert found.thresholds[1] > 1
    assert found.is_rare.tolist() == [False, False, True, True]
    assert found.n_safe in (1, 3)  # rare labels are accepted together or not at all
    assert found.shares[0] > 0.3


def test_accepted_labels_reach_the_target_with_the_confidence_asked_for():
    n_tries, n_missed = 60, 0
    for seed in range(n_tries):
        probs, is_label = draw(seed)
        threshold = fit(probs, is_label).thresholds[0]
        new = np.linspace(0, 1, 10_001)[1:-1]
        density = new ** (0.25 - 1) * (1 - new) ** (0.4 - 1)
        above = new >= threshold
        accuracy = (new * density)[above].sum() / density[above].sum() if above.any() else 1.0
        n_missed += accuracy < TARGET
    assert n_missed <= 0.2 * n_tries


def test_only_labels_of_the_set_are_accepted():
    found = LabelAcceptance(0.9, 0.9, np.array([0.6, 2.0]), np.zeros(2, bool), np.zeros(2))
    labels = np.array([[0, 1], [0, -1]], dtype=np.int32)
    accepted = found.accepts(np.array([[0.7, 1.0], [0.5, 0.9]]), labels)
    assert accepted.tolist() == [[True, False], [False, False]]


def test_nothing_to_accept_is_legal():
    nothing = np.zeros((50, 3), dtype=np.float32)
    found = fit(nothing, nothing > 0)
    assert found.n_safe == 0


def test_thresholds_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="per label"):
        LabelAcceptance(0.9, 0.9, np.zeros(2), np.zeros(3, bool), np.zeros(2))
