import pytest

from setrnn.comparison.time_left import Running, expected_seconds, time_left
from setrnn.methods import METHODS


def test_nothing_is_told_before_anything_is_known():
    assert time_left({}, [Running("set-rnn", 3.0, 0.0)], ["br"], 1) is None


def test_runs_take_as_long_as_those_of_their_method_did():
    measured = {"br": [10.0], "set-rnn": [90.0, 110.0]}
    assert time_left(measured, [], ["set-rnn", "set-rnn", "br"], 1) == pytest.approx(210)
    assert time_left(measured, [], ["set-rnn", "set-rnn", "br"], 2) == pytest.approx(110)


def test_what_has_run_is_not_left():
    measured = {"set-rnn": [100.0]}
    assert time_left(measured, [Running("set-rnn", 30.0, 0.3)], [], 1) == pytest.approx(70)


def test_a_run_of_an_unmeasured_method_goes_by_its_share():
    assert time_left({}, [Running("sgm", 30.0, 0.25)], [], 1) == pytest.approx(90)


def test_a_run_longer_than_those_before_goes_by_its_share():
    running = Running("sgm", 60.0, 0.5)
    assert time_left({"sgm": [50.0]}, [running], [], 1) == pytest.approx(60)


def test_an_unmeasured_method_is_scaled_from_the_others():
    expected = expected_seconds(["set-rnn"], {"br": [7.0]})
    ratio = METHODS["set-rnn"].relative_cost / METHODS["br"].relative_cost
    assert expected["set-rnn"] == pytest.approx(7.0 * ratio)


def test_every_method_has_a_cost():
    assert all(method.relative_cost > 0 for method in METHODS.values())
