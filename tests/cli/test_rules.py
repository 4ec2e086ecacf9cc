import json

import pytest
from json_lines import read_rows
from rich.console import Console

from setrnn.methods import METHODS
from setrnn.tagging.tagger import load


@pytest.fixture
def model(taggers, tmp_path):
    """A folder with a small seq2seq-rnn model, whose own rule is `sequence`."""
    taggers["seq2seq-rnn"].save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("rule", [None, "set", "sequence"])
def test_predict_goes_by_the_rule_or_the_methods_own(setrnn, corpus, model, tmp_path, rule):
    out = tmp_path / "out.jsonl"
    asked = [] if rule is None else ["--rule", rule]
    file = corpus / "test.jsonl"
    result = setrnn("predict", model, file, "--out", out, "--top", 3, "--device", "cpu", *asked)
    assert result.code == 0, result.err
    truth = read_rows(file)
    expected = load(model).tag(
        [row["text"] for row in truth],
        rule=rule or "sequence",
        top=3,
        features=[row.get("features", []) for row in truth],
    )
    for row, wanted in zip(read_rows(out), expected, strict=True):
        assert row["labels"] == list(wanted.labels)
        assert row["probability"] == pytest.approx(wanted.probability, rel=1e-4)
        assert len(row["alternatives"]) == len(wanted.alternatives)


def test_evaluate_says_the_rule_and_ranks_by_the_same_marginals(setrnn, corpus, model, tmp_path):
    measures = {}
    for rule in ("sequence", "set"):
        file = tmp_path / f"{rule}.json"
        result = setrnn("evaluate", model, corpus, "--json", file, "--rule", rule)
        assert result.code == 0, result.err
        assert f"rule {rule}" in result.out
        measures[rule] = json.loads(file.read_text())
        assert measures[rule]["rule"] == rule
        assert measures[rule]["method"] == "seq2seq-rnn"
    own = tmp_path / "own.json"
    assert setrnn("evaluate", model, corpus, "--json", own, "--device", "cpu").code == 0
    assert json.loads(own.read_text())["rule"] == "sequence"
    for name in ("precision@1", "precision@5", "ndcg@5"):
        assert measures["set"][name] == pytest.approx(measures["sequence"][name], abs=1e-6)
    assert measures["set"]["mean_probability"] >= measures["sequence"]["mean_probability"]


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
    assert "default: (the method's own)" in words.replace("[", "").replace("]", "")
    assert "predict then gives the sequence's probability" in words


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_an_unknown_device_is_one_line(setrnn, corpus, model, tmp_path, command):
    arguments = ["--out", tmp_path / "o"] if command == "predict" else []
    result = setrnn(command, model, corpus, *arguments, "--device", "gpu")
    assert result.code == 1
    (line,) = result.error_lines
    assert "There is no device 'gpu'" in line


def test_methods_shows_what_each_system_maximises_and_how_it_predicts(setrnn, monkeypatch):
    """The paper's Table 1, for its ten and those beyond it."""
    monkeypatch.setattr("setrnn.cli.models.stdout", Console(width=300))
    rows = [line for line in setrnn("methods").out.splitlines() if line.startswith("│")]
    cells = [tuple(cell.strip() for cell in row.strip("│").split("│")) for row in rows]
    assert cells == [(each.name, each.training, each.prediction) for each in METHODS.values()]
    assert len(cells) == len(METHODS) > 10
