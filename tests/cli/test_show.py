"""`setrnn show`, and the README.md of a model folder."""

import json
from dataclasses import replace
from itertools import islice

import pytest

from setrnn import __version__
from setrnn.data import newsroom
from setrnn.data.read import write_examples
from setrnn.tagging.loading import load


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    """A folder whose valid part is large enough to calibrate on."""
    folder = tmp_path_factory.mktemp("news")
    for split, size in {"train": 300, "valid": 150}.items():
        write_examples(islice(newsroom.examples(split), size), folder / f"{split}.jsonl")
    return folder


def read_card(setrnn, model):
    """Return what `show` prints, and the values that it writes; the README.md is the same."""
    file = model.with_suffix(".card.json")
    result = setrnn("show", model, "--json", file)
    assert result.code == 0, result.err
    assert (model / "README.md").read_text().partition("\n")[2] == result.out
    return result.out, json.loads(file.read_text())


def test_show_says_what_a_model_is_and_so_does_its_readme(setrnn, news, tmp_path):
    model = tmp_path / "model"
    assert setrnn("train", news, "--method", "br", "--out", model).code == 0
    text, card = read_card(setrnn, model)
    assert (card["method"], card["rule"], card["measure"]) == ("br", "f1", "instance_f1")
    assert card["data"]["n_documents"] == 300
    assert card["labels"] == list(load(model).labels.names)
    assert card["trained"].startswith("20")
    assert card["versions"]["setrnn"] == __version__
    assert card["calibration"]["n_documents"] == 150
    assert card["acceptance"] is None
    measured = card["measures_on_valid"]["rules"]["f1"]
    assert card["language"] == "english"
    for words in (
        "method: br",
        "language: `english`",
        "300 documents",
        card["trained"],
        __version__,
        "`sport`",
    ):
        assert words in text
    scores = tmp_path / "scores.json"
    setrnn("evaluate", model, news, "--split", "valid", "--json", scores)
    assert json.loads(scores.read_text())["label_f1"] == pytest.approx(measured["label_f1"])
    assert f"{measured['label_f1']:.3f}" in text

    assert setrnn("calibrate", model, news, "--target-accuracy", 0.2).code == 0
    text, card = read_card(setrnn, model)
    threshold = card["acceptance"]["rules"]["f1"]["threshold"]
    assert f"probability {threshold:.3f} or more" in text
    assert card["acceptance"]["labels"]["n_accepted"] == load(model).label_acceptance.n_safe


def test_show_names_the_members_of_a_mixture_and_their_weights(setrnn, news, tmp_path):
    for method in ("br", "br-support"):
        train = [news, "--method", method, "--out", tmp_path / method]
        assert setrnn("train", *train).code == 0
    mix = [tmp_path / "br", tmp_path / "br-support", "--data", news, "--out", tmp_path / "both"]
    assert setrnn("mix", *mix).code == 0
    text, card = read_card(setrnn, tmp_path / "both")
    assert {each["method"] for each in card["members"]} <= {"br", "br-support"}
    assert sum(each["weight"] for each in card["members"]) == pytest.approx(1)
    rules = load(tmp_path / "both").notes["mixture"]["rules"]
    assert card["measures_on_valid"]["held_out"]["f1"]["instance_f1"] == rules["f1"]["held_out"]
    assert "held out" in text


def test_names_in_a_card_cannot_break_it(setrnn, taggers, tmp_path):
    model, name = tmp_path / "model", "a`b\x1b[31m <script>\n# c"
    notes = {**taggers["br"].notes, "data": name}
    replace(taggers["br"], notes=notes).save(model)
    text, card = read_card(setrnn, model)
    assert card["data"]["name"] == name
    assert "\x1b" not in text
    assert not any(line.startswith("# c") for line in text.splitlines())


@pytest.mark.parametrize("notes", [{"mixture": 3}, {"valid": {"rule": []}}, {"versions": "x"}])
def test_damaged_notes_are_one_line_and_the_model_still_works(setrnn, taggers, tmp_path, notes):
    model = tmp_path / "model"
    replace(taggers["br"], notes=notes).save(model)
    result = setrnn("show", model)
    assert result.code == 1
    (line,) = result.error_lines
    assert "notes" in line
    assert load(model).tag(["The cup final"])


def test_a_folder_that_is_no_model_is_one_line(setrnn, tmp_path):
    result = setrnn("show", tmp_path)
    assert result.code == 1
    assert "is not a model" in result.error_lines[0]
