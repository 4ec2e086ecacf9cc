import numpy as np
import pytest

from setrnn.data.ragged import Ragged
from setrnn.systems import true_marginals
from setrnn.systems.rules.marginal_rules import choose_thresholds
from setrnn.systems.true_marginals import LEAST_KEPT, TrueMarginals
from setrnn.tagging.trust.calibrate import accept_labels
from setrnn.tagging.trust.labels import (
    fit_label_curves,
    fit_smooth_curves,
    held_out_label_probs,
)


@pytest.fixture
def make(monkeypatch):
    """Marginals of 900 documents and 40 labels on a long tail, dense or as pairs, in two parts."""
    random = np.random.default_rng(0)
    n, L = 900, 40
    odds = random.normal(-1 - np.arange(L) / 6, 3, (n, L))
    probs = (1 / (1 + np.exp(-odds))).astype(np.float32)
    is_label = random.random((n, L)) < probs**1.2
    rows = [np.flatnonzero(row).tolist() for row in is_label]

    def make(many_labels):
        monkeypatch.setattr(true_marginals, "MANY_LABELS", many_labels)
        parts = [slice(0, 400), slice(400, n)]
        return TrueMarginals.concatenate(
            [TrueMarginals.of(probs[part], Ragged.from_lists(rows[part])) for part in parts]
        )

    return make


def test_pairs_are_those_that_matter_and_the_true_ones(make):
    dense, pairs = make(41), make(40)
    assert dense.places is None
    is_kept = (dense.probs >= LEAST_KEPT) | dense.is_label
    assert (~is_kept).sum() > 0
    whole = slice(0, 40)
    np.testing.assert_array_equal(pairs.places.fill(pairs.probs, whole), dense.probs * is_kept)
    np.testing.assert_array_equal(pairs.places.fill(pairs.is_label, whole), dense.is_label)


def test_pairs_give_the_thresholds_of_all_marginals(make):
    dense, pairs = make(41), make(40)
    expected = choose_thresholds(dense.probs, dense.is_label)
    found = choose_thresholds(pairs.probs, pairs.is_label, pairs.places)
    assert found.common == expected.common
    np.testing.assert_allclose(found.by_label, expected.by_label, atol=1e-3)


def test_pairs_give_the_curves_of_all_marginals(make):
    dense, pairs = make(41), make(40)
    expected, found = fit_label_curves(dense), fit_label_curves(pairs)
    for name in ("common", "offsets", "slopes"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.values, expected.values, atol=1e-5)
    held_out, of_pairs = held_out_label_probs(dense), held_out_label_probs(pairs)
    places = pairs.places
    np.testing.assert_allclose(of_pairs, held_out[places.document, places.label], rtol=1e-5)


def test_pairs_accept_the_labels_of_all_marginals(make):
    dense, pairs = make(41), make(40)
    curves = fit_smooth_curves(dense)
    expected, _, expected_after = accept_labels(dense, curves, (0.6, 0.9))
    found, _, after = accept_labels(pairs, curves, (0.6, 0.9))
    assert expected.n_safe > 0
    np.testing.assert_allclose(found.thresholds, expected.thresholds, rtol=1e-5)
    np.testing.assert_array_equal(found.is_rare, expected.is_rare)
    np.testing.assert_allclose(found.shares, expected.shares, atol=1e-3)
    assert after.error == pytest.approx(expected_after.error)
