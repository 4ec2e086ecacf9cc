from io import BytesIO

import numpy as np
import pytest

from setrnn.report.figures.reliability import (
    accuracy_at,
    draw_reliability,
    largest_share,
)
from setrnn.tagging.acceptance import reliability

SHARES = np.linspace(0.05, 1, 20)
STARTS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


def test_a_model_that_knows_what_is_right_accepts_all_of_that_first():
    is_right = np.array([True] * 60 + [False] * 40)
    probs = np.where(is_right, 0.9, 0.1)
    assert accuracy_at(np.array([0.3, 0.6, 0.8]), probs, is_right) == pytest.approx([1, 1, 0.75])


def test_a_model_that_is_always_right_stays_at_one():
    random = np.random.default_rng(0)
    assert accuracy_at(SHARES, random.random(50), np.ones(50, dtype=bool)) == pytest.approx(1)


def test_a_constant_probability_gains_nothing_by_accepting_fewer():
    assert accuracy_at(SHARES, np.full(40, 0.5), np.arange(40) < 10) == pytest.approx(0.25)


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
