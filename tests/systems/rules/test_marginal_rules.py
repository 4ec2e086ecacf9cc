import numpy as np
import pytest

from setrnn.systems.rules import marginal_rules
from setrnn.systems.rules.marginal_rules import choose_thresholds


def problem(seed, n=60, n_labels=5, decimals=None):
    random = np.random.default_rng(seed)
    marginals = random.random((n, n_labels)).astype(np.float32) ** 2
    if decimals is not None:
        marginals = marginals.round(decimals)
    return marginals, random.random((n, n_labels)) < marginals


def micro_f1(is_predicted, is_label):
    return 2 * (is_predicted & is_label).sum() / (is_predicted.sum() + is_label.sum())


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("seed", range(5))
def test_no_common_threshold_has_a_better_micro_f1(seed, decimals):
    marginals, is_label = problem(seed, decimals=decimals)
    common = choose_thresholds(marginals, is_label).common
    best = max(micro_f1(marginals >= each, is_label) for each in np.unique(marginals))
    assert micro_f1(marginals >= common, is_label) == pytest.approx(best)


def test_a_rare_label_does_not_follow_its_one_document():
    """One document of p = 0.05 does not move the threshold of a label there."""
    marginals, is_label = problem(2, n=2000)
    marginals[:, 0] = np.linspace(0, 0.6, 2000)
    is_label[:, 0] = False
    is_label[166, 0] = True  # p = 0.05
    assert choose_thresholds(marginals, is_label).by_label[0] > 0.08


@pytest.mark.parametrize("low", [0.0006, 0.01])
def test_a_label_with_one_unlikely_document_is_not_predicted_everywhere(low):
    """The best F1 on its documents would be to predict it for all of them, or nearly all."""
    marginals, is_label = problem(4, n=140)
    marginals[:, 0] = np.linspace(low, 2 * low, 140)
    marginals[:, 1] = low
    is_label[:, :2] = False
    is_label[1, :2] = True
    found = choose_thresholds(marginals, is_label)
    assert (marginals[:, :2] >= found.by_label[:2]).mean() < 0.05


def test_a_label_that_some_folds_of_a_cross_validation_lack_is_not_predicted_everywhere():
    """The fold that holds out the one document of a label gives it probability 0."""
    marginals, is_label = problem(4, n=140)
    marginals[:, 0] = 0.01
    marginals[:28, 0] = 0
    is_label[:, 0] = False
    is_label[0, 0] = True
    assert choose_thresholds(marginals, is_label).by_label[0] > 0.01


def test_a_label_of_nearly_all_documents_is_predicted_for_all():
    marginals, is_label = problem(4, n=140)
    marginals[:, 0], is_label[:, 0] = 0.9, True
    assert (marginals[:, 0] >= choose_thresholds(marginals, is_label).by_label[0]).all()


def test_the_threshold_of_a_label_with_many_documents_is_its_own():
    marginals, is_label = problem(5, n=4000)
    marginals[:, 0] /= 4
    is_label[:, 0] = np.random.default_rng(0).random(4000) < marginals[:, 0]
    found = choose_thresholds(marginals, is_label).by_label[0]
    best = max(micro_f1(marginals[:, 0] >= each, is_label[:, 0]) for each in marginals[:, 0])
    assert micro_f1(marginals[:, 0] >= found, is_label[:, 0]) > best - 0.01


def test_the_threshold_of_a_label_without_documents_is_the_expected_one_and_the_common_one():
    marginals, is_label = problem(3)
    marginals[:, 2] /= 10
    is_label[:, 2] = False
    marginals[:, 3] = 0
    found = choose_thresholds(marginals, is_label)
    values = np.sort(marginals[:, 2])[::-1]
    f1 = 2 * values.cumsum() / (np.arange(1, 61) + values.sum())
    best = f1.argmax()
    expected = (values[best] + values[best + 1]) / 2
    assert found.by_label[2] == pytest.approx((expected**4 * found.common) ** 0.2)
    assert found.by_label[3] == found.common


@pytest.mark.parametrize("n", [0, 4])
def test_without_labels_or_documents_half_is_taken(n):
    found = choose_thresholds(np.zeros((n, 3), np.float32), np.zeros((n, 3), bool))
    assert found.common == 0.5
    assert found.by_label.tolist() == [0.5] * 3


def test_thresholds_of_labels_in_parts_are_those_of_all_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    probs, is_true = rng.random((50, 23), dtype=np.float32), rng.random((50, 23)) < 0.2
    whole = choose_thresholds(probs, is_true)
    monkeypatch.setattr(marginal_rules, "PAIRS_AT_ONCE", 150)
    parts = choose_thresholds(probs, is_true)
    assert parts.common == whole.common
    np.testing.assert_array_equal(parts.by_label, whole.by_label)
