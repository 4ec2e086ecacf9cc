"""Training in two processes of torchrun, where one of them is killed."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest
from commands import TINY

from setrnn.data import newsroom
from setrnn.data.read import write_examples
from setrnn.training.run_folder import LAST

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
BLOCK = re.search(r"<!-- run by tests/faults/test_torchrun.py -->\n((?:    .*\n)+)", PAGE)
SETTINGS = [*TINY, "vectors.source=none", "training.epochs=40"]
SETTINGS += ["training.checkpoint_minutes=5"]
SECONDS = 120


@pytest.fixture
def start(tmp_path):
    """Start a command of the page with two processes instead of eight, in its own process."""
    (tmp_path / "news").mkdir()
    for split, size in {"train": 64, "valid": 8}.items():
        write_examples(islice(newsroom.examples(split), size), tmp_path / "news" / f"{split}.jsonl")
    started = []

    def run(line, *more):
        _, *words = shlex.split(line.replace("8", "2"), comments=True)
        settings = [each for setting in SETTINGS for each in ("--set", setting)]
        command = [sys.executable, "-m", "torch.distributed.run", *words, *more, *settings]
        variables = {**os.environ, "SETRNN_CACHE": str(tmp_path / "cache")}
        started.append(
            subprocess.Popen(
                command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True
            )
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.faults
def test_a_killed_process_ends_the_others_and_the_run_is_resumed(start, tmp_path):
    (line,) = BLOCK[1].splitlines()
    run = start(line)
    wait_for(tmp_path / "model.run" / LAST)
    os.kill(find_rank(run.pid, 1), signal.SIGKILL)
    said = run.communicate(timeout=SECONDS)[1]
    assert run.returncode != 0
    assert "--resume" in said
    assert not (tmp_path / "model").exists()
    run = start(line, "--resume")
    said = run.communicate(timeout=SECONDS)[1]
    assert run.returncode == 0, said
    assert "40/40" in said
    assert "from the beginning" not in said
    assert (tmp_path / "model").is_dir()


@pytest.mark.faults
def test_torchrun_ends_if_nothing_is_trained(start):
    run = start(BLOCK[1].replace("set-rnn", "br"))
    said = run.communicate(timeout=SECONDS)[1]
    assert run.returncode == 1
    assert "uses one process" in said


def wait_for(file):
    deadline = time.monotonic() + SECONDS
    while not file.exists():
        assert time.monotonic() < deadline, file
        time.sleep(0.05)


def find_rank(parent, rank):
    """Return the process of a rank among the children of torchrun."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_child = f"PPid:\t{parent}\n" in (folder / "status").read_text()
            if is_child and f"RANK={rank}" in (folder / "environ").read_text().split("\0"):
                return int(folder.name)
        except OSError:  # it has ended
            continue
    raise AssertionError(f"no process of rank {rank}")
