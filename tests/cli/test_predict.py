"""`setrnn predict`, and what `evaluate` shares with it: rules and limits on the sets."""

import json
import signal
import stat
import subprocess
import sys
import time

import pytest
from json_lines import read_rows

from setrnn.tagging.loading import load


@pytest.fixture
def sequence_model(taggers, tmp_path):
    """A folder with a small seq2seq-rnn model, whose own rule is `sequence`."""
    taggers["seq2seq-rnn"].save(tmp_path / "model")
    return tmp_path / "model"


def test_predict_writes_a_row_a_document_in_input_order(setrnn, corpus, trained, tmp_path):
    out = tmp_path / "out.jsonl"
    options = ("--out", out, "--top", 3, "--rule", "set")
    assert setrnn("predict", trained, corpus / "test.jsonl", *options).code == 0
    rows, truth = read_rows(out), read_rows(corpus / "test.jsonl")
    assert [row["id"] for row in rows] == [row["id"] for row in truth]
    for row in rows:
        assert list(row) == ["id", "labels", "probability", "alternatives"]
        sets = [row, *row["alternatives"]]
        assert len(sets) == 3
        assert len({frozenset(each["labels"]) for each in sets}) == 3
        probabilities = [each["probability"] for each in sets]
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0 < probabilities[0] <= 1


def test_predict_needs_no_labels_and_agrees_with_python(setrnn, trained, tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"text": "The cup final in Dravigrad"}\n{"text": ""}\n')
    result = setrnn("predict", trained, file, "--out", "-")
    assert result.code == 0, result.err
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["id"] for row in rows] == ["mine-1", "mine-2"]
    found = load(trained).tag(["The cup final in Dravigrad", ""])
    assert [row["labels"] for row in rows] == [list(each.labels) for each in found]


def test_predictions_never_replace_their_input_or_a_folder(setrnn, corpus, trained, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_bytes((corpus / "test.jsonl").read_bytes())
    for out, said in ((source, "is the input itself"), (tmp_path, "is a folder")):
        result = setrnn("predict", trained, source, "--out", out)
        assert result.code == 1
        assert said in result.err
    assert source.read_bytes() == (corpus / "test.jsonl").read_bytes()


def test_unknown_rules_are_refused(setrnn, corpus, trained, tmp_path):
    result = setrnn("predict", trained, corpus, "--out", tmp_path / "o", "--rule", "sett")
    assert result.code == 1
    assert "Did you mean 'set'?" in result.err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("rule", [None, "set", "sequence"])
def test_predict_goes_by_the_rule_or_the_methods_own(
    setrnn, corpus, sequence_model, tmp_path, rule
):
    out = tmp_path / "out.jsonl"
    asked = [] if rule is None else ["--rule", rule]
    file = corpus / "test.jsonl"
    result = setrnn(
        "predict", sequence_model, file, "--out", out, "--top", 3, "--device", "cpu", *asked
    )
    assert result.code == 0, result.err
    truth = read_rows(file)
    expected = load(sequence_model).tag(
        [row["text"] for row in truth],
        rule=rule or "sequence",
        top=3,
        features=[row.get("features", []) for row in truth],
    )
    for row, wanted in zip(read_rows(out), expected, strict=True):
        assert row["labels"] == list(wanted.labels)
        assert row["probability"] == pytest.approx(wanted.probability, rel=1e-4)
        assert len(row["alternatives"]) == len(wanted.alternatives)


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_classical_model_has_no_sequences(setrnn, corpus, trained, tmp_path, command):
    arguments = ["--out", tmp_path / "o"] if command == "predict" else ["--json", tmp_path / "o"]
    result = setrnn(command, trained, corpus, *arguments, "--rule", "sequence")
    assert result.code == 1
    (line,) = result.error_lines
    assert "emits labels one by one, and 'br' does not. Use rule 'set'" in line
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_help_says_whose_rule_is_the_default(setrnn, command):
    words = " ".join(setrnn(command, "--help").out.replace("│", " ").split())
    default = "default: (the model's own: that of the measure it was trained for, or of its method)"
    assert default in words.replace("[", "").replace("]", "")
    assert "its probability is the sequence's" in words


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_an_unknown_device_is_one_line(setrnn, corpus, sequence_model, tmp_path, command):
    arguments = ["--out", tmp_path / "o"] if command == "predict" else []
    result = setrnn(command, sequence_model, corpus, *arguments, "--device", "gpu")
    assert result.code == 1
    (line,) = result.error_lines
    assert "There is no device 'gpu'" in line


def test_every_row_by_rule_set_has_a_certificate(setrnn, corpus, taggers, tmp_path):
    """The rows of set-rnn-exact say what its search proves."""
    model, out = tmp_path / "model", tmp_path / "out.jsonl"
    taggers["set-rnn-exact"].save(model)
    assert setrnn("predict", model, corpus / "test.jsonl", "--out", out).code == 0
    for row in read_rows(out):
        assert set(row["certificate"]) == {"proved", "pruned_mass"}
        assert isinstance(row["certificate"]["proved"], bool)
        assert 0 <= row["certificate"]["pruned_mass"] <= 1
    evaluated = setrnn("evaluate", model, corpus)
    assert "of the predictions are proved" in " ".join(evaluated.out.split())


def test_predict_keeps_the_limits(setrnn, corpus, trained, tmp_path):
    first, second = load(trained).labels.names[:2]
    out = tmp_path / "out.jsonl"
    limits = ["--require", second, "--forbid", first, "--min-labels", 2, "--max-labels", 3]
    result = setrnn(
        "predict", trained, corpus / "test.jsonl", "--out", out, "--rule", "f1", *limits
    )
    assert result.code == 0, result.err
    rows = read_rows(out)
    assert rows
    for row in rows:
        assert second in row["labels"]
        assert first not in row["labels"]
        assert 2 <= len(row["labels"]) <= 3


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--min-labels", 3, "--max-labels", 2], "min_labels is 3"),
        (["--require", "nothing like it"], "The model has no label 'nothing like it'."),
        (["--min-labels", 10_000], "min_labels is 10000"),
        (["--max-labels", -1], "max_labels must be 0 or more"),
        (["--rule", "label-f1"], "setrnn calibrate MODEL VALID"),
    ],
)
def test_what_no_set_can_meet_is_one_line(
    setrnn, corpus, trained, tmp_path, command, options, message
):
    out = ["--out", tmp_path / "o"] if command == "predict" else ["--json", tmp_path / "o"]
    result = setrnn(command, trained, corpus, *out, *options)
    assert result.code == 1
    (line,) = result.error_lines
    assert message in line
    assert not (tmp_path / "o").exists()


def test_a_killed_predict_leaves_the_old_file_and_the_next_one_leaves_nothing_else(
    setrnn, corpus, trained, tmp_path
):
    folder, rows = tmp_path / "out", (corpus / "test.jsonl").read_bytes()
    folder.mkdir()
    out, long = folder / "out.jsonl", tmp_path / "long.jsonl"
    out.write_text("old\n")
    out.chmod(0o600)
    long.write_bytes(rows * 1000)
    command = [sys.executable, "-m", "setrnn", "predict", trained, long, "--out", out]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL) as process:
        while len(list(folder.iterdir())) == 1:
            assert process.poll() is None, "it ended too early"
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert out.read_text() == "old\n"
    assert setrnn("predict", trained, corpus / "test.jsonl", "--out", out).code == 0
    assert len(read_rows(out)) == rows.count(b"\n")
    assert list(folder.iterdir()) == [out]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
