"""The commands of docs/training.md for a run that was stopped, run as they are printed."""

import json
import os
import re
import shlex
import signal
import sys
from itertools import islice
from pathlib import Path

import pytest

from setrnn.cli import main
from setrnn.data import newsroom
from setrnn.data.read import write_examples
from setrnn.training.loop import Trainer

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
BLOCK = re.search(r"<!-- run by tests/docs/test_training_page.py -->\n((?:    setrnn .*\n)+)", PAGE)
SMALL = {
    "vectors": {"source": "none", "dimensions": 8},
    "model": {"encoder_units": 8, "decoder_units": 8, "wide": "off"},
    "search": {"beam_width": 2},
    "training": {"epochs": 12, "batch_size": 32},
}


def test_a_stopped_run_is_finished_continued_and_prolonged(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.json").write_text(json.dumps(SMALL))
    (tmp_path / "news").mkdir()
    for split, size in {"train": 32, "valid": 8}.items():
        write_examples(islice(newsroom.examples(split), size), tmp_path / "news" / f"{split}.jsonl")
    commands = [shlex.split(line, comments=True) for line in BLOCK[1].splitlines()]
    first = commands[0][: commands[0].index("--resume")]
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", stop_after(Trainer._step, 5))
        assert run(first, monkeypatch) == 130
    assert "keep epoch" in capsys.readouterr().err
    n_epochs = []
    for command in commands:
        assert run(command, monkeypatch) == 0, capsys.readouterr().err
        config = json.loads((tmp_path / "model" / "config.json").read_text())
        n_epochs.append(len(config["notes"]["epochs"]))
    assert n_epochs == [4, 12, 16]


def stop_after(step, n_steps):
    """Stop training by Ctrl-C after some steps."""
    steps = iter(range(1, 1000))

    def step_and_stop(*arguments):
        if next(steps) == n_steps:
            os.kill(os.getpid(), signal.SIGINT)
        return step(*arguments)

    return step_and_stop


def run(command, monkeypatch):
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code or 0
