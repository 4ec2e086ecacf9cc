"""Curves of label probabilities: near the truth, increasing, shrunk for rare labels."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import expit, logit

from setrnn.systems.true_marginals import TrueMarginals
from setrnn.tagging.trust.acceptance import label_reliability
from setrnn.tagging.trust.labels import (
    LabelCurves,
    add_knots,
    fit_label_curves,
    fit_smooth_curves,
    keep_better_curves,
    log_loss,
)


def fit(own, is_label):
    return fit_smooth_curves(TrueMarginals.of_matrices(own, is_label))[0]


def hold_out(own, is_label):
    pairs = TrueMarginals.of_matrices(own, is_label)
    return pairs.fill(fit_smooth_curves(pairs)[1], slice(0, own.shape[1]))


@pytest.fixture(scope="module")
def overconfident():
    """2,000 documents, 20 labels of descending frequency, with log-odds twice too large."""
    random = np.random.default_rng(0)
    truth = expit(random.normal(-2.5, 2.0, (2_000, 20)) - np.linspace(0, 3, 20))
    truth[:, 3] = expit(logit(truth[:, 3]) - 1.0)  # a label that the model overrates
    own = expit(2 * logit(truth) + np.where(np.arange(20) == 3, 2.0, 0.0))
    return own.astype(np.float32), random.random(truth.shape) < truth, truth


def test_calibrated_probabilities_are_near_the_truth(overconfident):
    own, is_label, truth = overconfident
    found = hold_out(own, is_label)
    is_shown = truth > 0.05
    error = np.abs(found - truth)[is_shown].mean()
    assert error < 0.03 < np.abs(own - truth)[is_shown].mean() / 3
    assert label_reliability(found, is_label).error < 0.02
    assert label_reliability(own, is_label).error > 0.05


def test_each_label_keeps_its_order(overconfident):
    own, is_label, _ = overconfident
    found = fit(own, is_label)(own)
    for label in range(own.shape[1]):
        order = np.argsort(own[:, label], kind="stable")
        assert (np.diff(found[order, label]) >= 0).all()


def test_a_label_moves_only_as_far_as_its_documents_show(overconfident):
    own, is_label, _ = overconfident
    many, few = fit(own, is_label), fit(own[:60], is_label[:60])
    assert abs(many.offsets[3]) > 3 * np.abs(np.delete(many.offsets, 3)).mean()
    assert abs(few.offsets[3]) < abs(many.offsets[3])


@pytest.mark.parametrize("is_right", [np.zeros, np.ones])
def test_labels_that_are_never_or_always_right_stay_finite(is_right):
    probs = np.full((100, 3), 0.999, dtype=np.float32)
    found = fit(probs, is_right((100, 3), dtype=bool))(probs)
    assert np.isfinite(found).all()
    assert ((found > 0.5) == bool(is_right(1)[0])).all()


def test_probabilities_against_the_truth_are_not_turned_round():
    random = np.random.default_rng(0)
    probs = random.random((500, 2)).astype(np.float32)
    curves = fit(probs, random.random((500, 2)) > probs)
    assert (np.diff(curves(np.linspace(0.01, 0.99, 9)[:, None].repeat(2, 1)), axis=0) >= 0).all()


def test_knots_are_added_only_where_they_predict_better(overconfident):
    own, is_label, truth = overconfident
    stepped = np.where(own > 0.5, 0.9, 0.1) * own  # a jump that no smooth curve follows
    found, _ = fit_label_curves(TrueMarginals.of_matrices(stepped, is_label))
    smooth = fit(stepped, is_label)
    assert len(found.knots) > 2
    error = [np.abs(each(stepped) - truth)[truth > 0.05].mean() for each in (found, smooth)]
    assert error[0] < error[1]
    assert (np.diff(found(np.linspace(0, 1, 50)[:, None].repeat(20, 1)), axis=0) >= 0).all()
    few = add_knots(smooth, TrueMarginals.of_matrices(stepped[:100], is_label[:100]))
    assert len(few.knots) == 2


def test_curves_that_are_worse_on_other_documents_are_not_used(overconfident):
    random = np.random.default_rng(5)
    probs = random.random((100, 20)).astype(np.float32) / 2
    own = TrueMarginals.of_matrices(probs, random.random((100, 20)) < probs)  # a perfect model
    new, held_out = fit_label_curves(own)
    found, after = keep_better_curves(None, new, held_out, own)
    assert found is not new
    assert np.allclose(after, own.probs, atol=1e-5)
    own = TrueMarginals.of_matrices(*overconfident[:2])
    new, held_out = fit_label_curves(own)
    for old in (None, found):
        assert keep_better_curves(old, new, held_out, own)[0] is new


def test_memory_is_bounded(overconfident):
    """(n, L, 3) numbers of 64 bits would be six times the probabilities."""
    own, is_label = np.tile(overconfident[0], (40, 20)), np.tile(overconfident[1], (40, 20))
    small = fit(*overconfident[:2])
    curves = LabelCurves(small.common, np.tile(small.offsets, 20), np.tile(small.slopes, 20))
    tracemalloc.start()
    try:
        found = curves(own)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * own.nbytes
    np.testing.assert_array_equal(found[:2_000, :20], small(overconfident[0]))
    assert log_loss(found, is_label) < log_loss(own, is_label)


def test_the_offset_of_a_label_does_not_lift_small_probabilities():
    """Half of 60 documents at 0.01 are right, and none of 1,940 at 0.004."""
    probs = np.full((2_000, 2), 0.004, dtype=np.float32)
    probs[:60] = 0.01
    is_label = np.zeros(probs.shape, dtype=bool)
    is_label[:30] = True
    found = fit(probs, is_label)(probs)
    assert found.sum() < 1.5 * is_label.sum()
