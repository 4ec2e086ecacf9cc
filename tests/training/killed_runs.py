"""Run by test_resume.py: train in processes that are killed, resume, and compare.

`python killed_runs.py FOLDER` prints how often a run was killed (SIGKILL) and stopped (SIGINT),
and fails if the result differs by a bit from a run without a stop.
"""

import os
import random
import signal
import sys
import time
from itertools import islice
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not survive a fork

# Imported once here, and not in every child:
import lightning.fabric  # noqa: F401
import scipy.optimize  # noqa: F401
import sklearn.feature_extraction.text  # noqa: F401
import torch
from tiny_runs import SIZES, TINY

from setrnn.cli import main as setrnn
from setrnn.data import newsroom
from setrnn.data.formats import write_examples
from setrnn.training.run_folder import run_folder_of

torch.set_num_threads(1)
TOUCHING = ("open", "os.", "shutil.", "tempfile.")


def start(model, folder, *more, die_at=None, die_in=".run"):
    """Train in a child process; it may kill itself at a file operation in its run folder."""
    child = os.fork()
    if child:
        return child
    try:
        output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if die_at is not None:
            events = iter(range(1, 1_000_000))

            def hook(event, arguments):
                is_ours = event.startswith(TOUCHING) and die_in in str(arguments)
                if is_ours and next(events) == die_at:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(hook)
        settings = [
            each
            for setting in (*TINY, "training.checkpoint_minutes=0")
            for each in ("--set", setting)
        ]
        data = [str(folder / "train.jsonl"), "--valid", str(folder / "valid.jsonl")]
        sys.argv = ["setrnn", "train", *data, "--method", "set-rnn", "--out", str(model)]
        sys.argv += ["--device", "cpu", *settings, *more]
        setrnn()
    except SystemExit as stop:
        sys.stderr.flush()
        os._exit(int(stop.code or 0))
    finally:
        os._exit(99)


def result(child):
    """Wait, and return the exit code, or the signal below zero."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def weights(model):
    return (model / "model.safetensors").read_bytes()


def written_at(file):
    return file.stat().st_mtime_ns if file.exists() else None


def wait_for_new(file, child):
    """Wait until a file is written, as long as the child lives."""
    before = written_at(file)
    while written_at(file) == before:
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it ended too early"
        time.sleep(0.001)


def main(folder):
    os.environ["SETRNN_CACHE"] = str(folder / "cache")
    for split, size in SIZES.items():
        write_examples(islice(newsroom.examples(split), size), folder / f"{split}.jsonl")
    whole = folder / "whole"
    assert result(start(whole, folder)) == 0, (folder / "output.txt").read_text()

    chance, n_kills, killed = random.Random(0), 0, folder / "killed"
    while True:
        code = result(start(killed, folder, "--resume", die_at=chance.randint(6, 44)))
        if code == 0:
            break
        assert code == -signal.SIGKILL, (folder / "output.txt").read_text()
        n_kills += 1
    assert weights(killed) == weights(whole), "killed"
    left = {file.name for file in run_folder_of(killed).iterdir() if file.name.startswith(".")}
    assert not left, left

    unsaved = folder / "unsaved"
    child = start(unsaved, folder, die_at=2, die_in=".unsaved.setrnn-")
    assert result(child) == -signal.SIGKILL, "it must be killed while it writes the model"
    n_kills += 1
    assert result(start(unsaved, folder)) == 1, "its run must not be replaced"
    assert result(start(unsaved, folder, "--resume")) == 0, (folder / "output.txt").read_text()
    assert weights(unsaved) == weights(whole), "unsaved"

    n_stops, stopped = 0, folder / "stopped"
    for number in (signal.SIGINT, signal.SIGTERM):
        child = start(stopped, folder, "--resume")
        wait_for_new(run_folder_of(stopped) / "last.safetensors", child)
        os.kill(child, number)
        assert result(child) == 130, (folder / "output.txt").read_text()
        n_stops += 1
    assert result(start(stopped, folder, "--resume")) == 0, (folder / "output.txt").read_text()
    assert weights(stopped) == weights(whole), "stopped"
    assert "Traceback" not in (folder / "output.txt").read_text()
    sys.stdout.write(f"{n_kills} {n_stops}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
