"""Members of an automatic training."""

from pathlib import Path

import pytest

from setrnn.config import load_config
from setrnn.errors import BusyError
from setrnn.tagging.learn import members
from setrnn.tagging.learn.member_candidates import Candidate
from setrnn.tagging.learn.members import Planned, train_member
from setrnn.training.run_folder import only_trainer
from setrnn.training.start import TrainOptions


def test_nobody_else_trains_in_the_run_of_a_member(small_prepared, tmp_path, monkeypatch):
    def train(prepared, method, config, options, place):
        with pytest.raises(BusyError), only_trainer(Path(f"{place}.run")):
            pass
        return options

    monkeypatch.setattr(members, "train_uncalibrated", train)
    candidate = Candidate("sigmoid", "sigmoid", load_config())
    planned = Planned(candidate, small_prepared.folder, load_config())
    options = TrainOptions("cpu", max_seconds=100.0)
    used = train_member(planned, tmp_path / "sigmoid", options, 0.0, print)
    assert used.max_seconds < 0  # it was asked for in 1970
    assert used.run_folder == tmp_path / "sigmoid.run"
