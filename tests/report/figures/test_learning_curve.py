import pytest

from setrnn.report.figures.learning import make_learning_curve


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
