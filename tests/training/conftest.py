import os
import resource
import signal
from contextlib import contextmanager

import pytest
from tiny_runs import SIZES, Run, prepared_of


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
    """The run that those which stop are held against."""
    return Run(tiny)


@pytest.fixture
def signal_at_step(monkeypatch):
    """Send this process signals right after a training step, counted from 1."""

    def arrange(n, *signals):
        from setrnn.training.loop import Trainer

        step, steps = Trainer._step, iter(range(1, 1_000_000))

        def step_and_signal(self, *arguments):
            result = step(self, *arguments)
            if next(steps) == n:
                for number in signals or (signal.SIGINT,):
                    os.kill(os.getpid(), number)
            return result

        monkeypatch.setattr(Trainer, "_step", step_and_signal)

    return arrange


@pytest.fixture
def small_files():
    """Let no file grow beyond some bytes, as on a full disk."""

    @contextmanager
    def limited(n_bytes):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return limited
