from io import BytesIO

import numpy as np
import pytest

from setrnn.report.figures.reliability import (
    draw_reliability,
    largest_share,
    make_acceptance_curve,
)
from setrnn.tagging.acceptance import reliability

SHARES = np.linspace(0.05, 1, 20)
STARTS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


def test_a_model_that_knows_what_is_right_accepts_all_of_that_first():
    is_right = np.array([True] * 60 + [False] * 40)
    curve = make_acceptance_curve(np.where(is_right, 0.9, 0.1), is_right)
    assert curve.threshold.tolist() == [0.9, 0.1]
    assert curve.share.tolist() == [0.6, 1.0]
    assert curve.accuracy.tolist() == [1.0, 0.6]
    assert curve.accuracy_at(np.array([0.3, 0.6, 0.8])) == pytest.approx([1, 1, 0.75])


def test_a_model_that_is_always_right_stays_at_one():
    random = np.random.default_rng(0)
    curve = make_acceptance_curve(random.random(50), np.ones(50, dtype=bool))
    assert curve.accuracy_at(SHARES) == pytest.approx(1)


def test_a_constant_probability_gains_nothing_by_accepting_fewer():
    curve = make_acceptance_curve(np.full(40, 0.5), np.arange(40) < 10)
    assert curve.share.tolist() == [1.0]
    assert curve.accuracy_at(SHARES) == pytest.approx(0.25)


def test_all_accepted_is_the_accuracy_of_all():
    random = np.random.default_rng(1)
    is_right = random.random(200) < 0.7
    curve = make_acceptance_curve(random.random(200).round(1), is_right)
    assert curve.accuracy_at(np.array([1.0])) == pytest.approx(is_right.mean())
    for threshold, share, accuracy in zip(
        curve.threshold, curve.share, curve.accuracy, strict=True
    ):
        assert 0 <= threshold <= 1
        assert 0 < share <= 1
        assert 0 <= accuracy <= 1


def test_the_largest_share_that_is_right_often_enough():
    shares, accuracy = np.array([0.2, 0.4, 0.6, 1.0]), np.array([0.8, 0.95, 0.9, 0.5])
    assert largest_share(shares, accuracy, 0.9) == 0.6
    assert largest_share(shares, accuracy, 0.99) is None


@pytest.mark.parametrize("kind", STARTS)
def test_the_same_numbers_give_the_same_file(kind):
    rng = np.random.default_rng(0)
    probs = rng.random(300)
    before, after = (reliability(probs, rng.random(300) < each) for each in (probs**2, probs))
    files = []
    for _ in range(2):
        file = BytesIO()
        draw_reliability(before, after, file, kind)
        files.append(file.getvalue())
    assert files[0] == files[1]
    assert files[0].startswith(STARTS[kind])
