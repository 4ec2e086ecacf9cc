"""The warning that training has become much slower."""

import torch
from tiny_runs import SIZES, Run, prepared_of

from setrnn.progress import Note
from setrnn.training import slowdown
from setrnn.training.slowdown import SpeedWatch

EXACT = "set-probability"


def test_a_tenth_of_the_best_speed_is_warned_of_once_per_fall():
    watch = SpeedWatch()
    speeds = [1_000, 1_100, 500, 110, 100, 1_000, 23]
    texts = [watch.add(EXACT, speed * 10, 10.0) for speed in speeds]
    assert [bool(text) for text in texts] == [False, False, False, True, False, False, True]
    assert "23" in texts[-1]
    assert "1,100" in texts[-1]


def test_short_times_are_added_up():
    watch = SpeedWatch()
    for _ in range(10):  # short epochs, or reports
        assert watch.add(EXACT, 500, 0.5) is None
    assert watch.best == 1_000
    found = [watch.add(EXACT, 10, 1.0) for _ in range(5)]
    assert [bool(text) for text in found] == [False, False, False, False, True]


def test_another_objective_has_another_speed():
    watch = SpeedWatch()
    watch.add("fixed-order", 10_000, 10.0)
    assert watch.add(EXACT, 500, 10.0) is None
    assert watch.best == 50


def test_a_run_tells_its_user_and_leaves_torch_its_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(slowdown, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(slowdown, "SLOW_SHARE", 1.0)  # every speed is slow
    events, n_before = [], torch.get_num_threads()
    Run(prepared_of(SIZES, tmp_path), "training.epochs=1", watch=events.append)
    warnings = [each.text for each in events if isinstance(each, Note) and each.is_warning]
    assert len(warnings) == 1
    assert "documents/s" in warnings[0]
    assert torch.get_num_threads() == n_before
