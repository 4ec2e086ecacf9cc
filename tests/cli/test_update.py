"""`setrnn update`."""

import json

import pytest


@pytest.fixture
def export(tmp_path):
    """A CSV of the page, with a label that no model knows."""
    file = tmp_path / "export.csv"
    rows = [f"q{n},The curling team {n} won,sport;curling,true" for n in range(30)]
    file.write_text("\n".join(["id,text,labels,reviewed", *rows]), encoding="utf-8")
    return file


def test_an_export_of_the_page_updates_a_model(setrnn, trained, corpus, export, tmp_path):
    out = tmp_path / "updated"
    result = setrnn("update", trained, export, "--data", corpus, "--out", out)
    assert result.code == 0, result.err
    assert "'curling'" in result.err
    for words in ("60 old", " new ", "before", "after", "instance-F1", "label-F1", "micro-F1"):
        assert words in result.out
    labels = json.loads((out / "labels.json").read_text())["labels"]
    assert labels[-1] == "curling"
    shown = setrnn("show", out, "--json", tmp_path / "card.json")
    assert "updated from" in shown.out
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["updated"]["new_labels"] == ["curling"]
    assert sum(card["updated"]["n_new"].values()) == 30


def test_old_documents_need_not_have_the_names_of_new_fields(setrnn, trained, corpus, tmp_path):
    file = tmp_path / "own.csv"
    rows = [f"q{n};The curling team {n} won;sport, curling" for n in range(25)]
    file.write_text("\n".join(["nr;body;topics", *rows]), encoding="utf-8")
    own = ["--text-field", "body", "--labels-field", "topics", "--id-field", "nr"]
    own += ["--label-separator", ","]
    result = setrnn("update", trained, file, "--data", corpus, "--out", tmp_path / "updated", *own)
    assert result.code == 0, result.err
    assert "'curling'" in result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "{model}", "--data", "{corpus}"], "itself"),
        (["--out", "{out}"], "--data"),
        (["--out", "{out}", "--data", "nothing.jsonl"], "nothing.jsonl"),
        (["--out", "{out}", "--data", "{corpus}", "--set", "model.dropout=0.1"], "training"),
    ],
)
def test_wrong_use_fails_in_one_line(setrnn, trained, corpus, export, tmp_path, options, words):
    names = {"model": trained, "corpus": corpus, "out": tmp_path / "out"}
    result = setrnn("update", trained, export, *(each.format(**names) for each in options))
    assert result.code == 1
    (line,) = result.error_lines
    assert words in line
    assert not (tmp_path / "out").exists()
