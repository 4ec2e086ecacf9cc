"""`setrnn train` with recurrent systems, as from a shell."""

import json
import os
import re
import signal
import sys
from itertools import islice

import pytest
from tiny_runs import SIZES, TINY

from setrnn.cli import main
from setrnn.data import newsroom
from setrnn.data.disk import locked
from setrnn.data.read import write_examples
from setrnn.progress import Progress
from setrnn.tagging.tagger import load
from setrnn.tagging.trust.calibrate import calibrate

SETTINGS = [part for setting in TINY for part in ("--set", setting)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for split, size in SIZES.items():
        write_examples(islice(newsroom.examples(split), size), folder / f"{split}.jsonl")
    return folder


@pytest.fixture
def command(corpus, tmp_path, monkeypatch, capsys):
    """Train set-rnn; return the exit code and what was said."""
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*more, data=corpus, method="set-rnn"):
        arguments = [data, "--method", method, "--out", tmp_path / "m", *SETTINGS, *more]
        arguments += ["--overwrite"]
        monkeypatch.setattr(sys, "argv", ["setrnn", "train", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, capsys.readouterr().err

    return run


def test_a_line_is_said_for_each_epoch(command, tmp_path):
    code, said = command("--keep-run")
    assert code == 0, said
    rows = [line.split() for line in said.splitlines() if re.match(r" *[12]/2 ", line)]
    notes = json.loads((tmp_path / "m" / "config.json").read_text())["notes"]
    assert [f"{row['loss']:.3f}" for row in notes["epochs"]] == [row[1] for row in rows]
    assert f"The model is that of epoch {notes['best_epoch']}" in said
    assert (tmp_path / "m.run" / "epochs.csv").exists()


def test_ctrl_c_says_how_to_resume_and_resume_does(command, tmp_path, signal_at_step):
    assert command()[0] == 0
    whole = (tmp_path / "m" / "model.safetensors").read_bytes()
    (tmp_path / "m" / "model.safetensors").unlink()
    signal_at_step(6)
    code, said = command()
    assert code == 130
    assert said.splitlines()[-1].startswith("Stopped in epoch 2")
    assert "--resume" in said.splitlines()[-1]
    code, said = command()
    assert code == 1
    assert "unfinished run" in said
    code, said = command("--resume", "--keep-run")
    assert code == 0, said
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == whole
    (tmp_path / "m" / "model.safetensors").unlink()
    assert command("--resume")[0] == 0
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == whole


def test_the_run_is_removed_once_the_model_is_written(command, tmp_path, signal_at_step):
    signal_at_step(6)
    assert command()[0] == 130
    assert (tmp_path / "m.run").exists()
    code, said = command("--resume", "--budget", "0.00001")
    assert code == 0, said
    assert (tmp_path / "m.run").exists(), "only the budget has ended it"
    assert command("--resume")[0] == 0
    assert {each.name for each in tmp_path.iterdir()} == {"m", "cache"}


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def test_a_calibration_that_was_stopped_is_finished_by_resume(
    command, corpus, tmp_path, monkeypatch
):
    monkeypatch.setattr("setrnn.tagging.trust.calibrate.MIN_DOCUMENTS", 2)
    file = tmp_path / "m" / "calibration.json"
    with monkeypatch.context() as patch:
        patch.setattr(
            "setrnn.tagging.trust.calibrate.fit_calibration", failing(KeyboardInterrupt())
        )
        assert command()[0] == 130
    assert not file.exists()
    code, said = command("--resume", "--keep-run")
    assert code == 0, said
    assert "Calibrated on" in said
    assert load(tmp_path / "m").calibration is not None
    calibrated = calibrate(load(tmp_path / "m"), corpus, "f1", 0.2).tagger
    calibrated.save_calibration(tmp_path / "m")
    assert command("--resume")[0] == 0
    found = load(tmp_path / "m").calibration.acceptance["f1"]
    assert found.target == 0.2, "what the user asked for is kept"


def test_one_process_at_a_time_trains_a_model(command, tmp_path):
    with locked(tmp_path / "m.run"):
        code, said = command()
    assert code == 1
    assert re.search(rf"m\.run .*process {os.getpid()}\. .*--out", said.splitlines()[-1])
    assert not (tmp_path / "m.run").exists()
    assert command()[0] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_word_vectors_are_made(command, tmp_path, monkeypatch, number):
    def make(prepared, settings, on_progress):
        on_progress(Progress("word vectors", 0.2, 1.0, detail="word2vec: 1 of 5 epochs"))
        os.kill(os.getpid(), number)
        signal.sigtimedwait([], 5)

    monkeypatch.setattr("setrnn.model.encoders.gru.word_vectors", make)
    code, said = command("--set", "vectors.source=word2vec")
    assert code == 130
    assert "--resume" not in said.splitlines()[-1]
    assert not (tmp_path / "m").exists()
