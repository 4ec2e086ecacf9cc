"""`setrnn mix`."""

import json

import pytest


@pytest.fixture
def models(taggers, tmp_path):
    """The folders of two models with the same labels."""
    for name in ("br", "pcc"):
        taggers[name].save(tmp_path / name)
    return [tmp_path / "br", tmp_path / "pcc"]


@pytest.fixture
def mixed(setrnn, models, corpus, tmp_path):
    result = setrnn("mix", *models, "--data", corpus, "--out", tmp_path / "mixed")
    assert result.code == 0, result.err
    return result, tmp_path / "mixed"


def test_models_are_mixed_and_the_mixture_is_used_like_any_other(setrnn, mixed, corpus, tmp_path):
    result, model = mixed
    for words in ("br", "pcc", "mixture", "instance", "hamming", "f1", "others"):
        assert words in result.out
    assert "needed to calibrate" in result.err  # 60 documents are too few
    assert "Wrote" in result.err
    file = tmp_path / "scores.json"
    assert setrnn("evaluate", model, corpus, "--rule", "f1", "--json", file).code == 0
    assert json.loads(file.read_text())["method"] == "mixture"
    rows = tmp_path / "rows.jsonl"
    assert setrnn("predict", model, corpus / "test.jsonl", "--out", rows).code == 0
    assert len(rows.read_text().splitlines()) == 80
    sets = tmp_path / "calibrated.json"
    arguments = ["--rule", "f1", "--json", sets, "--allow-training-documents"]
    done = setrnn("calibrate", model, corpus / "train.jsonl", *arguments)
    assert done.code == 0, done.err
    assert "sets" in json.loads(sets.read_text())["scalings"]
    assert setrnn("evaluate", model, corpus, "--rule", "label-f1").code == 0


def test_what_cannot_be_mixed_is_refused_in_one_line(setrnn, models, mixed, corpus, tmp_path):
    out = tmp_path / "again"
    for arguments, words in (
        ([*models, "--data", tmp_path / "nothing", "--out", out], "nothing"),
        ([models[0], mixed[1], "--data", corpus, "--out", out], "is a mixture"),
        ([*models, "--data", corpus, "--out", corpus], "not a model"),
        ([*models, "--data", corpus, "--out", models[0]], "one of the models"),
        ([models[0], tmp_path, "--data", corpus, "--out", out], "not a model"),
    ):
        result = setrnn("mix", *arguments)
        assert result.code == 1
        assert words in result.error_lines[0]
        assert not out.exists()
    assert setrnn("mix", *models, "--out", out).code == 2  # without --data


def test_a_mixture_is_not_trained(setrnn, corpus, tmp_path):
    result = setrnn("train", corpus, "--method", "mixture", "--out", tmp_path / "model")
    assert result.code == 1
    assert "setrnn mix" in result.error_lines[0]
