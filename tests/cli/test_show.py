"""`setrnn show`, and the README.md of a model folder."""

import json
from dataclasses import replace

import pytest

from setrnn.tagging.tagger import load


def read_card(setrnn, model):
    """Return what `show` prints, and the values that it writes; the README.md is the same."""
    file = model.with_suffix(".card.json")
    result = setrnn("show", model, "--json", file)
    assert result.code == 0, result.err
    assert (model / "README.md").read_text().partition("\n")[2] == result.out
    return result.out, json.loads(file.read_text())


def test_names_in_a_card_cannot_break_it(setrnn, taggers, tmp_path):
    model, name = tmp_path / "model", "a`b\x1b[31m <script>\n# c"
    notes = {**taggers["br"].notes, "data": name}
    replace(taggers["br"], notes=notes).save(model)
    text, card = read_card(setrnn, model)
    assert card["notes"]["data"] == name
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
