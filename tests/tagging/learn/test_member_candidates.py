"""The settings of members, with and without a transformer."""

import json

import pytest

from setrnn.config import WEIGHTS, load_config
from setrnn.tagging.learn import member_candidates
from setrnn.tagging.learn.data import read_settings
from setrnn.tagging.learn.member_candidates import (
    list_candidates,
    settings_over_words,
    settings_with_weights,
)


@pytest.fixture
def file(tmp_path):
    """A file of settings, as --config takes it."""
    file = tmp_path / "settings.json"
    values = {"model": {"dropout": 0.45}, "training": {"epochs": 5}, "text": {"max_words": 77}}
    file.write_text(json.dumps(values))
    return file


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """The package of the weights, installed or not."""

    def install(is_there):
        monkeypatch.setattr(member_candidates, "find_spec", lambda name: is_there or None)
        folder = tmp_path / "model" if is_there else None
        for module in ("setrnn.tagging.learn.member_candidates", "setrnn.config"):
            monkeypatch.setattr(f"{module}.find_weights", lambda: folder)

    return install


def check_changes(config):
    assert config.model.dropout == 0.45
    assert config.training.epochs == 5
    assert config.text.max_words == 77
    assert config.seed == 3
    assert config.training.metric == "label_f1"


def test_the_settings_of_a_file_reach_all_members(file, installed, tmp_path):
    asked = read_settings("transformer", file, ["encoder.path=folder"], 3, "label-f1")
    words = settings_over_words(asked)
    check_changes(words)
    assert not words.encoder.is_pretrained
    assert words.text.tokenizer == "words"
    assert words.training.learning_rate == load_config().training.learning_rate
    installed(True)
    pretrained = settings_with_weights(read_settings("default", file, [], 3, "label-f1"))
    check_changes(pretrained)
    assert pretrained.encoder.path == str(tmp_path / "model")
    preset = load_config("transformer", overrides=["encoder.path=folder"])
    assert pretrained.training.learning_rate == preset.training.learning_rate


def test_the_settings_of_a_whole_config_reach_both_kinds(file, installed):
    installed(True)
    whole = load_config("transformer", file, ["encoder.path=folder", "model.evidence=false"])
    words = settings_over_words(read_settings("default", whole, (), None, None))
    assert words.model.dropout == 0.45
    assert not words.model.evidence
    assert words.training.learning_rate == load_config().training.learning_rate
    whole = load_config(file=file)
    asked = read_settings("default", whole, (), None, None)
    assert settings_with_weights(asked).model.dropout == 0.45


def test_an_encoder_that_was_chosen_is_not_replaced(installed):
    installed(True)
    asked = read_settings("default", None, ["encoder.name=gru"], None, None)
    assert settings_with_weights(asked) is None


def test_the_name_of_the_package_stands_for_its_folder(installed, tmp_path):
    given = [f"encoder.path={WEIGHTS}"]
    installed(True)
    assert load_config("transformer", overrides=given).encoder.path == str(tmp_path / "model")
    installed(False)
    assert load_config("transformer", overrides=given).encoder.path == WEIGHTS


def test_a_transformer_stands_beside_the_gru():
    asked = read_settings("transformer", None, ["encoder.path=folder"])
    found = list_candidates(asked, has_texts=True, is_on_gpu=True)
    assert len({each.name for each in found}) == len(found)
    assert {each.method for each in found if each.is_pretrained} == {
        each.method for each in found if each.method.is_network and not each.is_pretrained
    }
