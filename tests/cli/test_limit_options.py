import json

import pytest
from json_lines import read_rows


@pytest.fixture
def model(taggers, tmp_path):
    taggers["br"].save(tmp_path / "model")
    return tmp_path / "model"


def test_predict_keeps_the_limits(setrnn, corpus, model, tmp_path, taggers):
    first, second = taggers["br"].labels.names[:2]
    out = tmp_path / "out.jsonl"
    limits = ["--require", second, "--forbid", first, "--min-labels", 2, "--max-labels", 3]
    result = setrnn("predict", model, corpus / "test.jsonl", "--out", out, "--rule", "f1", *limits)
    assert result.code == 0, result.err
    rows = read_rows(out)
    assert rows
    for row in rows:
        assert second in row["labels"]
        assert first not in row["labels"]
        assert 2 <= len(row["labels"]) <= 3


def test_evaluate_keeps_the_limits_and_tells_the_missing_mass(setrnn, corpus, model, tmp_path):
    file = tmp_path / "scores.json"
    result = setrnn("evaluate", model, corpus, "--json", file, "--only-seen", "--max-labels", 1)
    assert result.code == 0, result.err
    values = json.loads(file.read_text())
    assert values["mean_predicted_set_size"] <= 1
    assert values["missing_mass"] == 0
    assert values["set_log_likelihood"] < 0
    assert values["n_impossible_sets"] >= 0
    assert "log p(true set)" in result.out


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--min-labels", 3, "--max-labels", 2], "at most 2 labels when at least 3"),
        (["--require", "nothing like it"], "The model has no label 'nothing like it'."),
        (["--min-labels", 10_000], "No set has 10000 labels"),
        (["--max-labels", -1], "max_labels must be 0 or more"),
        (["--rule", "label-f1"], "setrnn calibrate MODEL VALID"),
    ],
)
def test_what_no_set_can_meet_is_one_line(
    setrnn, corpus, model, tmp_path, command, options, message
):
    out = ["--out", tmp_path / "o"] if command == "predict" else ["--json", tmp_path / "o"]
    result = setrnn(command, model, corpus, *out, *options)
    assert result.code == 1
    (line,) = result.error_lines
    assert message in line
    assert not (tmp_path / "o").exists()
