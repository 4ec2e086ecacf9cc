import os
import shutil
import signal

import pytest
from tiny_runs import SIZES, Run, prepared_of

from setrnn.errors import StoppedError
from setrnn.training.loop import Trainer


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return prepared_of(SIZES, tmp_path_factory.mktemp("tiny") / "newsroom")


@pytest.fixture(scope="session")
def without_valid(tmp_path_factory):
    sizes = {"train": SIZES["train"]}
    return prepared_of(sizes, tmp_path_factory.mktemp("tiny") / "newsroom")


@pytest.fixture
def train(tiny):
    """Train a tiny system with some settings."""

    def run(*settings, data=tiny, **more):
        return Run(data, *settings, **more)

    return run


@pytest.fixture(scope="session")
def never_stopped(tiny):
    """A run without a stop, to compare stopped runs with."""
    return Run(tiny)


@pytest.fixture(scope="session")
def finished_folder(tiny, tmp_path_factory):
    """The folder of a finished run; copy it before changing it."""
    folder = tmp_path_factory.mktemp("finished") / "m.run"
    Run(tiny, folder=folder)
    return folder


@pytest.fixture(scope="session")
def stopped_folder(tiny, tmp_path_factory):
    """The folder of a run that Ctrl-C stopped in its second epoch; copy it before changing it."""
    folder = tmp_path_factory.mktemp("stopped") / "m.run"
    with pytest.MonkeyPatch.context() as patch:
        _send_signals(patch, 6, signal.SIGINT)
        with pytest.raises(StoppedError, match="--resume"):
            Run(tiny, folder=folder)
    return folder


@pytest.fixture
def stopped(stopped_folder, tmp_path):
    """A copy of the folder of a stopped run."""
    return shutil.copytree(stopped_folder, tmp_path / "m.run")


@pytest.fixture
def finished(finished_folder, tmp_path):
    """A copy of the folder of a finished run."""
    return shutil.copytree(finished_folder, tmp_path / "m.run")


@pytest.fixture
def signal_at_step(monkeypatch):
    """Send this process signals right after a training step, counted from 1."""
    return lambda n, *signals: _send_signals(monkeypatch, n, *(signals or (signal.SIGINT,)))


def _send_signals(patch, n, *signals):
    step, steps = Trainer._step, iter(range(1, 1_000_000))

    def step_and_signal(self, *arguments):
        result = step(self, *arguments)
        if next(steps) == n:
            for number in signals:
                os.kill(os.getpid(), number)
        return result

    patch.setattr(Trainer, "_step", step_and_signal)
