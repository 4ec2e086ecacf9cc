import numpy as np
import pytest

from setrnn.report.figures.curves import accuracy_at, largest_share, make_learning_curve

SHARES = np.linspace(0.05, 1, 20)


def rows(*values):
    return [{"epoch": number, "f1": value} for number, value in enumerate(values, start=1)]


def test_a_curve_is_the_mean_as_far_as_all_runs_went():
    curve = make_learning_curve([rows(0.2, 0.4, 0.9), rows(0.4, 0.6)], [3, 2], "f1")
    assert curve.epochs.tolist() == [1, 2]
    assert curve.values == pytest.approx([0.3, 0.5])
    assert curve.best == pytest.approx((2.5, 0.75))


def test_the_epoch_kept_is_the_one_the_run_names():
    assert make_learning_curve([rows(0.9, 0.5)], [2], "f1").best == (2, 0.5)
    assert make_learning_curve([rows(0.9, 0.5)], [None], "f1").best == (1, 0.9)


def test_runs_without_a_valid_part_have_no_curve():
    assert make_learning_curve([[{"epoch": 1, "loss": 2.0}], []], [0, None], "f1") is None
    assert make_learning_curve([rows(None)], [0], "f1") is None


def test_a_model_that_knows_what_is_right_accepts_all_of_that_first():
    is_right = np.array([True] * 60 + [False] * 40)
    probs = np.where(is_right, 0.9, 0.1)
    assert accuracy_at(np.array([0.3, 0.6, 0.8]), probs, is_right) == pytest.approx([1, 1, 0.75])


def test_all_accepted_is_the_accuracy_of_all():
    random = np.random.default_rng(1)
    is_right = random.random(200) < 0.7
    found = accuracy_at(SHARES, random.random(200).round(1), is_right)
    assert found[-1] == pytest.approx(is_right.mean())
    assert found.min() >= 0
    assert found.max() <= 1


def test_the_largest_share_that_is_right_often_enough():
    shares, accuracy = np.array([0.2, 0.4, 0.6, 1.0]), np.array([0.8, 0.95, 0.9, 0.5])
    assert largest_share(shares, accuracy, 0.9) == 0.6
    assert largest_share(shares, accuracy, 0.99) is None
