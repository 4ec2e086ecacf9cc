"""No command replaces a model or a file that it did not begin, unless it is asked to."""

import shutil

import pytest

from json_lines import read_rows
from setrnn.data.read import write_examples


@pytest.fixture
def place(taggers, small_examples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("br", "pcc", "old"):
        taggers["br" if name == "old" else name].save(tmp_path / name)
    write_examples(small_examples["train"][:40], tmp_path / "data.jsonl")
    return tmp_path


def read_all(folder):
    return {each.name: each.read_bytes() for each in folder.iterdir()}


COMMANDS = (
    "train data.jsonl --method br --no-valid --out old",
    "train data.jsonl --method set-rnn --resume --out old",
    "mix br pcc --data data.jsonl --out old --allow-training-documents",
    "distil br data.jsonl --out old",
    "update br data.jsonl --out old --data data.jsonl",
    "predict br data.jsonl --out old.jsonl",
    "predict br data.jsonl --out old.jsonl --workers 1",
)


@pytest.mark.parametrize("line", COMMANDS)
def test_what_exists_is_not_replaced_without_being_asked(setrnn, place, line):
    (place / "old.jsonl").write_text("mine")
    before = read_all(place / "old")
    result = setrnn(*line.split())
    assert result.code == 1
    (said,) = result.error_lines
    assert "--overwrite" in said
    assert read_all(place / "old") == before
    assert (place / "old.jsonl").read_text() == "mine"
    assert not (place / "old.run").exists()


@pytest.mark.parametrize("line", [COMMANDS[0], COMMANDS[5], COMMANDS[6]])
def test_what_exists_is_replaced_if_asked(setrnn, place, line):
    (place / "old.jsonl").write_text("mine")
    before = read_all(place / "old")
    result = setrnn(*line.split(), "--overwrite")
    assert result.code == 0, result.err
    if line.startswith("predict"):
        assert len(read_rows(place / "old.jsonl")) == 40
    else:
        assert read_all(place / "old") != before


def test_no_model_is_updated_onto_itself_even_if_asked(setrnn, place):
    line = "update br data.jsonl --out br --data data.jsonl --overwrite"
    result = setrnn(*line.split())
    assert "the model itself" in result.err


def test_a_prediction_that_was_begun_goes_on_without_being_asked(setrnn, place):
    line = "predict br data.jsonl --chunk-rows 20 --workers 1 --out"
    assert setrnn(*line.split(), "tags/").code == 0
    assert setrnn(*line.split(), "tags/").code == 0
    assert setrnn(*line.split(), "tags.jsonl").code == 0
    # As if a kill came between the joined file and the removal of its parts.
    shutil.copytree(place / "tags", place / "tags.jsonl.parts")
    assert setrnn(*line.split(), "tags.jsonl").code == 0
    assert not (place / "tags.jsonl.parts").exists()
