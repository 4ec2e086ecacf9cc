import json
import os
from itertools import islice

import pytest
from json_lines import read_rows

from setrnn.data import newsroom
from setrnn.data.read import write_examples
from setrnn.errors import DataError
from setrnn.tagging.loading import load
from setrnn.tagging.trust.acceptance import fit_acceptance
from small_taggers import SMALL_OVERRIDES


@pytest.fixture(scope="module")
def larger(tmp_path_factory):
    """A folder whose valid part is large enough to calibrate on."""
    folder = tmp_path_factory.mktemp("larger")
    for split, size in {"train": 400, "valid": 600, "test": 300}.items():
        write_examples(islice(newsroom.examples(split), size), folder / f"{split}.jsonl")
    return folder


def test_train_then_calibrate_then_predict_then_evaluate(setrnn, larger, tmp_path):
    model, out = tmp_path / "model", tmp_path / "out.jsonl"
    result = setrnn("train", larger, "--method", "br", "--out", model)
    assert result.code == 0, result.err
    (line,) = [each for each in result.err.splitlines() if each.startswith("Calibrated on")]
    assert "the 600 valid documents" in line
    assert load(model).calibration.n_documents == 600
    rows = {}
    for name, options in {"calibrated": [], "raw": ["--raw"]}.items():
        arguments = ["--top", 3, *options]
        assert setrnn("predict", model, larger, "--out", out, *arguments).code == 0
        rows[name] = read_rows(out)
    for one, own in zip(rows["calibrated"], rows["raw"], strict=True):
        assert one["labels"] == own["labels"]
        assert one["probability"] != own["probability"]
        assert "accepted" not in one

    before = {name: (model / name).read_bytes() for name in ("model.safetensors", "labels.json")}
    figure, report = tmp_path / "reliability.svg", tmp_path / "report.json"
    arguments = ["--target-accuracy", 0.6, "--figure", figure, "--json", report]
    result = setrnn("calibrate", model, larger, *arguments)
    assert result.code == 0, result.err
    assert figure.read_bytes().startswith(b"<?xml")
    found = json.loads(report.read_text())
    assert found["n_documents"] == 600, "the valid part"
    assert found["calibration_error"] < found["calibration_error_raw"]
    accepted = found["acceptance"]
    assert f"{accepted['threshold']:.3f} or more" in result.out
    assert f"{accepted['n_accepted']} documents pass ({accepted['share']:.1%})" in result.out
    assert f"{found['calibration_error']:.3f} after" in result.out
    assert "calibrated on the others" in result.out
    for name, content in before.items():
        assert (model / name).read_bytes() == content

    assert setrnn("predict", model, larger, "--out", out).code == 0
    rows = read_rows(out)
    for row in rows:
        assert row["accepted"] == (row["probability"] >= accepted["threshold"])
    scores = tmp_path / "scores.json"
    result = setrnn("evaluate", model, larger, "--json", scores)
    assert result.code == 0, result.err
    measured = json.loads(scores.read_text())
    assert measured["n_accepted"] == sum(row["accepted"] for row in rows) > 0
    assert measured["accuracy_accepted_low"] <= measured["accuracy_accepted"]
    assert measured["accuracy_accepted_high"] >= 0.6, "the target is kept within its interval"
    assert f"{measured['share_accepted']:.1%}" in result.out


def test_a_target_out_of_reach_is_said_and_nothing_is_accepted(setrnn, larger, trained, tmp_path):
    result = setrnn("calibrate", trained, larger, "--target-accuracy", 0.999)
    assert result.code == 0, result.err
    (line,) = [each for each in result.out.splitlines() if "No prediction is accepted" in each]
    assert "confidence 0.9 is below 0.999" in line
    out = tmp_path / "out.jsonl"
    assert setrnn("predict", trained, larger, "--out", out).code == 0
    assert not any(row["accepted"] for row in read_rows(out))
    scores = tmp_path / "scores.json"
    assert setrnn("evaluate", trained, larger, "--json", scores).code == 0
    measured = json.loads(scores.read_text())
    assert (measured["n_accepted"], measured["accuracy_accepted"]) == (0, None)


def test_a_lone_file_and_a_prepared_folder_will_do(setrnn, larger, tmp_path):
    result = setrnn("data", "prepare", larger, "--out", tmp_path / "p", "--vectors", "none")
    prepared = result.out.split()[-1]
    model = tmp_path / "m"
    assert setrnn("train", prepared, "--method", "br", "--out", model).code == 0
    reports = []
    for data in (larger / "valid.jsonl", prepared):
        file = tmp_path / "report.json"
        result = setrnn("calibrate", model, data, "--json", file)
        assert result.code == 0, result.err
        assert "warning" not in result.err
        reports.append(json.loads(file.read_text()))
    assert reports[0] == reports[1]
    before = {each.name: each.read_bytes() for each in model.iterdir()}
    result = setrnn("calibrate", model, prepared, "--split", "train")
    assert result.code == 1
    (line,) = result.error_lines
    assert "trained on about 100%" in line
    assert "--allow-training-documents" in line
    assert {each.name: each.read_bytes() for each in model.iterdir()} == before
    arguments = ["--split", "train", "--allow-training-documents"]
    result = setrnn("calibrate", model, prepared, *arguments)
    assert result.code == 0
    assert "warning: The model was trained on about 100%" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target-accuracy", "1.5"], "The target accuracy must lie between 0 and 1, got 1.5"),
        (["--target-accuracy", "0"], "The target accuracy must lie between 0 and 1"),
        (["--confidence", "1"], "The confidence must lie between 0 and 1"),
        (["--rule", "sett"], "Did you mean 'set'?"),
        (["--rule", "sequence"], "'br' does not"),
        (["--figure", "f.jpeg"], "--figure must end in .svg, .png, .pdf"),
        (["--split", "dev"], "has no 'dev' part"),
        ([], "60 documents are too few to calibrate on: give at least 100"),
    ],
)
def test_what_cannot_be_done_is_one_line(setrnn, corpus, trained, arguments, said):
    before = {each.name: each.read_bytes() for each in trained.iterdir()}
    result = setrnn("calibrate", trained, corpus, *arguments)
    assert result.code == 1
    (line,) = result.error_lines
    assert said in line
    assert {each.name: each.read_bytes() for each in trained.iterdir()} == before


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(
    setrnn, larger, trained, monkeypatch
):
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    monkeypatch.setattr("setrnn.load", lambda *_: pytest.fail("it began to work"))
    result = setrnn("calibrate", trained, larger)
    assert result.code == 1
    (line,) = result.error_lines
    assert "cannot be updated" in line


def test_a_model_that_is_replaced_meanwhile_stays(setrnn, taggers, larger, trained, monkeypatch):
    def fit(*arguments):
        taggers["pcc"].save(trained)
        return fit_acceptance(*arguments)

    monkeypatch.setattr("setrnn.tagging.trust.calibrate.fit_acceptance", fit)
    result = setrnn("calibrate", trained, larger)
    assert result.code == 1
    assert "changed" in result.error_lines[0]
    assert load(trained).method == "pcc"
    assert load(trained).calibration is None


def test_a_model_folder_with_a_readme_is_calibrated_and_keeps_it(setrnn, larger, trained):
    (trained / "README.md").write_text("# My model\n")
    result = setrnn("calibrate", trained, larger)
    assert result.code == 0, result.err
    assert (trained / "README.md").read_text() == "# My model\n"
    assert load(trained).calibration is not None


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("br", MemoryError("Unable to allocate 7 GiB")),
        ("br", DataError("No labels.")),
        ("sigmoid", RuntimeError("DefaultCPUAllocator: can't allocate memory")),
    ],
)
def test_a_failed_calibration_leaves_a_saved_model_and_a_warning(
    setrnn, larger, tmp_path, monkeypatch, method, error
):
    """The model is saved before it is calibrated: an hour of training must not be lost."""
    model = tmp_path / "model"

    def fail(*_, **__):
        assert load(model).method == method, "saved before"
        raise error

    monkeypatch.setattr("setrnn.tagging.trust.calibrate.fit_calibration", fail)
    small = [f"--set={each}" for each in (*SMALL_OVERRIDES, "training.epochs=1")]
    settings = small if method == "sigmoid" else []
    result = setrnn("train", larger, "--method", method, "--out", model, *settings)
    assert result.code == 0, result.err
    (line,) = [each for each in result.err.splitlines() if "not calibrated" in each]
    assert line.startswith("warning: ")
    reason = "" if isinstance(error, RuntimeError) else str(error)
    assert (reason or "out of memory") in line
    assert load(model).calibration is None
    assert len(load(model).tag(["The cup final"])) == 1
