import csv
import json
import os

import pytest

from json_lines import read_rows
from setrnn.tagging.tagger import load
from setrnn.tagging.trust.acceptance import fit_acceptance


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(
    setrnn, larger, trained, monkeypatch
):
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    monkeypatch.setattr("setrnn.load", lambda *_: pytest.fail("it began to work"))
    result = setrnn("calibrate", trained, larger)
    assert result.code == 1
    (line,) = result.error_lines
    assert "is read-only" in line


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


def test_one_table_says_what_each_target_accepts(setrnn, larger, trained):
    words = ("calibrate", trained, larger, "--target-accuracy", "0.55")
    result = setrnn(*words, "--json", trained.with_suffix(".json"))
    assert result.code == 0, result.err
    found = json.loads(trained.with_suffix(".json").read_text())
    rows = [line.split() for line in result.out.splitlines()]
    for each in found["accepted_shares"]:
        target = f"{each['target']:g}" + "*" * (each["target"] == 0.55)
        assert [target, f"{each['sets']:.1%}", f"{each['labels']:.1%}"] in rows
    assert "calibration error" not in result.out
    more = setrnn(*words, "--details").out
    assert "calibration error" in more
    assert "Predicted sets by their calibrated probability" in more
    assert more.startswith(result.out)


def test_shown_labels_are_said_predicted_and_evaluated(setrnn, larger, trained, tmp_path):
    result = setrnn("calibrate", trained, larger, "--target-recall", "0.9")
    assert result.code == 0, result.err
    shown = load(trained).fitted.shown
    said = f"Shown beside each prediction: {shown.n_labels:.1f} labels, which have"
    assert said in result.out
    for name in ("out.jsonl", "out.csv"):
        result = setrnn("predict", trained, larger, "--split", "valid", "--out", tmp_path / name)
        assert result.code == 0, result.err
    rows = read_rows(tmp_path / "out.jsonl")
    assert all(each["shown_labels"].keys() <= {*load(trained).labels.names} for each in rows)
    assert any(each["shown_labels"] for each in rows)
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = [row["shown_labels"] for row in csv.DictReader(file)]
    assert cells == [";".join(each["shown_labels"]) for each in rows]
    result = setrnn("evaluate", trained, larger, "--split", "valid")
    assert "Shown beside each prediction:" in result.out
    result = setrnn("calibrate", trained, larger, "--target-recall", "0.9999")
    assert "No labels are shown" in result.out
    assert setrnn("calibrate", trained, larger, "--target-recall", "1").code == 1
