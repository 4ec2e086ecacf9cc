import numpy as np
import pytest

from setrnn.data.ragged import Ragged
from setrnn.systems import true_marginals
from setrnn.systems.rules.marginal_rules import choose_thresholds
from setrnn.systems.true_marginals import LEAST_KEPT, TrueMarginals
from setrnn.tagging.trust.acceptance import fit_label_acceptance, label_reliability
from setrnn.tagging.trust.labels import fit_label_curves, fit_smooth_curves

WHOLE = slice(0, 40)


@pytest.fixture(scope="module")
def matrices():
    """Marginals of 900 documents and 40 labels on a long tail, and what is true."""
    random = np.random.default_rng(0)
    odds = random.normal(-1 - np.arange(40) / 6, 3, (900, 40))
    probs = (1 / (1 + np.exp(-odds))).astype(np.float32)
    return probs, random.random(probs.shape) < probs**1.2


@pytest.fixture
def make(matrices, monkeypatch):
    """All pairs, or those that matter of many labels; joined from two parts."""

    def make(many_labels):
        monkeypatch.setattr(true_marginals, "MANY_LABELS", many_labels)
        parts = [tuple(each[rows] for each in matrices) for rows in (slice(400), slice(400, 900))]
        rows = ((probs, [np.flatnonzero(row).tolist() for row in known]) for probs, known in parts)
        return TrueMarginals.concatenate(
            [TrueMarginals.of(probs, Ragged.from_lists(known)) for probs, known in rows]
        )

    return make


def test_pairs_are_those_that_matter_and_the_true_ones(make, matrices):
    probs, is_label = matrices
    is_kept = (probs >= LEAST_KEPT) | is_label
    assert (~is_kept).sum() > 0
    for pairs, kept in ((make(41), probs), (make(40), probs * is_kept)):
        np.testing.assert_array_equal(pairs.fill(pairs.probs, WHOLE), kept)
        np.testing.assert_array_equal(pairs.fill(pairs.is_label, WHOLE), is_label)


def test_pairs_give_the_thresholds_of_all_marginals(make, matrices):
    expected = choose_thresholds(*matrices)
    for many_labels, tolerance in ((41, 0.0), (40, 5e-3)):
        pairs = make(many_labels)
        found = choose_thresholds(pairs.probs, pairs.is_label, pairs)
        assert found.common == expected.common
        np.testing.assert_allclose(found.by_label, expected.by_label, atol=tolerance)


def test_the_pairs_that_matter_give_the_curves_of_all(make):
    every, pairs = make(41), make(40)
    (expected, of_every), (found, of_pairs) = fit_label_curves(every), fit_label_curves(pairs)
    for name in ("common", "offsets", "slopes"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.values, expected.values, atol=1e-5)
    held_out = every.fill(of_every, WHOLE)[pairs.document, pairs.label]
    np.testing.assert_allclose(of_pairs, held_out, rtol=1e-5)


def test_the_pairs_that_matter_accept_the_labels_of_all(make):
    found, shown = [], []
    for own in (make(41), make(40)):
        curves, held_out = fit_smooth_curves(own)
        calibrated = curves(own.probs, own.label)
        found.append(fit_label_acceptance(own, calibrated, held_out, 0.6, 0.9))
        shown.append(label_reliability(held_out, own.is_label))
    assert found[0].n_safe > 0
    np.testing.assert_allclose(found[1].thresholds, found[0].thresholds, rtol=1e-5)
    assert shown[1].error == pytest.approx(shown[0].error)
