from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from setrnn.config import ClassicalSettings
from setrnn.data.ragged import Ragged
from setrnn.model.devices import limited_threads
from setrnn.systems.classical import system
from setrnn.systems.classical.active_features import fit_sparse_logistic
from setrnn.systems.classical.logistic import fit_logistic
from setrnn.systems.classical.system import TrainingData, fit_linear

TIGHT = ClassicalSettings(max_steps=1000, tolerance=1e-9)


@pytest.fixture(scope="module")
def long_tail():
    """300 documents of 60 words; of 20 labels, each has two words, and most labels are rare."""
    random = np.random.default_rng(0)
    shares = 0.4 / np.arange(1, 21)
    is_label = random.random((300, 20)) < shares
    words = random.random((300, 60)) < 0.05
    words[:, :20] |= is_label & (random.random((300, 20)) < 0.9)
    words[:, 20:40] |= is_label & (random.random((300, 20)) < 0.5)
    features = words * random.random((300, 60)) / 3
    return sp.csr_matrix(features.astype(np.float32)), sp.csr_matrix(is_label.astype(np.float32))


@pytest.mark.parametrize(("l1", "l2"), [(0.1, 0.03), (0.5, 0.1), (0.0, 1.0)])
def test_the_weights_are_those_of_all_features(long_tail, l1, l2):
    features, targets = (each.toarray().astype(float) for each in long_tail)

    def objective(weights, intercepts):
        logits = features @ weights + intercepts
        loss = (np.logaddexp(0, logits) - targets * logits).sum(0)
        sums = np.abs(weights).sum(0), np.square(weights).sum(0)
        return loss + l1 * sums[0] + l2 / 2 * sums[1]

    settings = replace(TIGHT, l1=l1, l2=l2)
    expected, expected_intercepts = fit_logistic(*long_tail, settings)
    weights, intercepts = fit_sparse_logistic(*long_tail, settings)
    assert sp.issparse(weights)
    found = weights.toarray()
    # Small weights are left out, and features whose derivatives hardly exceed the penalty.
    reached, best = objective(found, intercepts), objective(expected, expected_intercepts)
    np.testing.assert_allclose(reached, best, rtol=2e-3)
    is_large = np.abs(expected) > 0.5
    assert is_large.any()
    np.testing.assert_allclose(found[is_large], expected[is_large], atol=0.1)


def test_the_number_of_threads_changes_no_bit(long_tail):
    with limited_threads(1):
        one = fit_sparse_logistic(*long_tail, TIGHT)
    with limited_threads(2):
        two = fit_sparse_logistic(*long_tail, TIGHT)
    assert (one[0] != two[0]).nnz == 0
    np.testing.assert_array_equal(one[1], two[1])


def test_br_with_many_labels_predicts_as_with_few(long_tail, monkeypatch):
    features, targets = long_tail
    rows = [targets[row].indices.tolist() for row in range(targets.shape[0])]
    data = TrainingData(features, Ragged.from_lists(rows), 20)
    few = fit_linear(data)
    monkeypatch.setattr(system, "MANY_LABELS", 20)
    many = fit_linear(data)
    expected, found = (1 / (1 + np.exp(-each.logits(features))) for each in (few, many))
    np.testing.assert_allclose(found, expected, atol=0.1)
    assert np.abs(found - expected).mean() < 0.01
