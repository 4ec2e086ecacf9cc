import sys
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from setrnn.cli.explain import show_words
from setrnn.data.text.alignment import Word

TEXT = "The draft budget of Velmara for 2,500 [bold]clubs[/bold]"


@pytest.fixture
def model(taggers, tmp_path):
    """A folder with a small set-rnn model."""
    taggers["set-rnn"].save(tmp_path / "model")
    return tmp_path / "model"


def test_sequences_sets_and_words_are_shown(setrnn, model, taggers):
    result = setrnn("explain", model, "--text", TEXT, "--device", "cpu")
    assert result.code == 0, result.err
    found = taggers["set-rnn"].explain(TEXT)
    for each in found.sequences:
        assert " → ".join(each.labels) in result.out
        assert (f"{each.probability:.4f}" in result.out) == (each.probability >= 0.001)
    for each in found.sets:
        assert "{" + ", ".join(each.labels) in result.out
    assert "STOP" in result.out
    words = result.out.replace(" (unknown)", "").replace(" x2", "")
    for step in found.steps:
        first = found.words_for(step, 1)[0]
        assert f"{first.text} {first.weight:.2f}" in words
    assert "2,500" in result.out
    above = result.out[: result.out.index("The most probable sequences")]
    for each in found.label_words:
        (first,) = found.words_for(each, 1)
        row = next(line for line in above.splitlines() if line.startswith(each.label))
        assert f"{first.text} " in row
        assert ("(left out)" in row) != each.is_in_set


def test_a_mixture_names_the_member_of_its_sequences(setrnn, taggers, tmp_path):
    taggers["mixture"].save(tmp_path / "mixture")
    result = setrnn("explain", tmp_path / "mixture", "--text", TEXT, "--rule", "set")
    assert result.code == 0, result.err
    found = taggers["mixture"].explain(TEXT, rule="set")
    assert "The most probable sequences, by its member set-rnn" in result.out
    assert "The most probable sets; the predicted one is the most probable set" in result.out
    assert f"{found.predicted.probability:.4f}" in result.out


def test_a_text_from_standard_input_has_its_features(setrnn, model, monkeypatch):
    monkeypatch.setattr(sys, "stdin", StringIO("one 2 three"))
    features = ("--features", "money, prices", "--features", "none such")
    result = setrnn("explain", model, "--text", "-", *features)
    assert result.code == 0, result.err
    assert "of 3." in result.out
    assert "2 features read" in result.out
    assert "1 feature left out, unknown to the model: none such" in result.out


def test_no_word_of_any_script_is_cut_off(taggers, monkeypatch):
    found = taggers["br"].explain(TEXT)
    words = ["今", "今天", "医", "学", "コンピューター", "weather"]
    read = tuple(Word(word, 0, 1, "known", place) for place, word in enumerate(words))
    label = replace(found.label_words[0], weights=(0.5, 0.5, 0.5, 0.5, -0.5, -0.5))
    for width in range(50, 90):
        console = Console(width=width, file=StringIO())
        monkeypatch.setattr("setrnn.cli.tables.stdout", console)
        found = replace(found, words=read, label_words=(label,))
        show_words(found, "words", [(Text(label.label), label)], "+.2f")
        printed = "".join(console.file.getvalue().split())
        assert "…" not in printed
        assert all(word in printed for word in words[:4])
