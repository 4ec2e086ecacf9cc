"""The commands with a hierarchy of the labels."""

import json

import pytest


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text(json.dumps({"text": "Rain in Velmara"}) + "\n")
    return file


def test_a_model_without_a_hierarchy_is_measured_in_one(setrnn, corpus, trained, rows, tmp_path):
    scores = tmp_path / "scores.json"
    asked = ("--hierarchy", "newsroom", "--rule", "f1", "--json", scores)
    assert "hierarchical" in setrnn("evaluate", trained, corpus, *asked).out
    assert 0 < json.loads(scores.read_text())["hierarchical_f1"] < 1
    refused = setrnn("predict", trained, rows, "--out", "-", "--closed")
    assert refused.code == 1
    assert "--hierarchy" in refused.error_lines[0]


def test_labels_are_closed_by_convert_and_kept_by_prepare(setrnn, tmp_path):
    data, tree = tmp_path / "data.csv", tmp_path / "tree.tsv"
    data.write_text("text,labels\n" + "A goal,football\nRain,weather\n" * 6)
    tree.write_text("football\tsport\n")
    out = tmp_path / "closed.jsonl"
    asked = ("--hierarchy", tree, "--close-labels")
    assert setrnn("data", "convert", data, out, *asked).code == 0
    assert json.loads(out.read_text().splitlines()[0])["labels"] == ["football", "sport"]
    prepared = setrnn("data", "prepare", data, "--out", tmp_path / "prepared", *asked)
    assert prepared.code == 0, prepared.err
    (folder,) = (each for each in (tmp_path / "prepared").iterdir() if each.is_dir())
    model = tmp_path / "model"
    trained = setrnn("train", folder, "--method", "br", "--out", model)
    assert trained.code == 0, trained.err
    assert "closed upwards" in trained.err
    refused = setrnn("train", folder, "--method", "br", "--hierarchy", tree, "--out", model)
    assert "data prepare" in refused.error_lines[0]


@pytest.mark.parametrize(
    ("content", "words"), [("a,a\n", "own parent"), ("a,b\nb,a\n", "cycle"), ("x,y\n", "none of")]
)
def test_a_file_that_cannot_be_used_is_refused(setrnn, corpus, tmp_path, content, words):
    (tmp_path / "tree.csv").write_text(content)
    asked = ("--method", "br", "--hierarchy", tmp_path / "tree.csv", "--out", tmp_path / "model")
    result = setrnn("train", corpus, *asked)
    assert result.code == 1
    assert words in result.error_lines[0]
