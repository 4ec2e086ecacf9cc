"""What `setrnn.train` and `setrnn.prepare` refuse and when; settings, and what the data decides."""

import json

import pytest

import setrnn
from setrnn.config import Config, TextSettings, load_config
from setrnn.data.cache import prepare
from setrnn.data.read import write_examples
from setrnn.errors import ConfigError, DataError, ModelError, StoppedError
from setrnn.tagging.learn.data import (
    choose_batch_size,
    choose_epochs,
    choose_preset,
    fit_to_data,
    open_training_data,
)

QUICK = {"vectors.source": "none", "training.epochs": 1, "model.encoder_units": 8}
TEXTS = {
    "english": "The government has decided that there will be more money for all of the schools.",
    "german": "Die Regierung hat beschlossen, dass es mehr Geld für die Schulen in dem Land gibt.",
}


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"method": "bre"}, ConfigError, "Did you mean 'br'"),
        ({"method": "set-rnn", "device": "gpu"}, ConfigError, "no device 'gpu'"),
        ({"method": "br", "settings": ["classical.l1=much"]}, ConfigError, "must be a number"),
        ({"method": "br", "config": "nowhere.json"}, ConfigError, r"nowhere\.json"),
        ({"method": "br", "config": Config(), "seed": 1}, ConfigError, "not both"),
        ({"method": "br", "resume": True}, ConfigError, "resume"),
        ({"method": "set-rnn", "resume": True}, ConfigError, "resume needs out"),
        ({"method": "br", "out": "diary"}, ModelError, "not a model"),
        ({"method": "br", "out": "diary/today.txt/m"}, DataError, "cannot be written"),
    ],
)
def test_all_else_is_checked_before_the_data_is_read(tmp_path, monkeypatch, arguments, error, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "today.txt").write_text("mine")
    with pytest.raises(error, match=said):
        setrnn.train("no-such-data.jsonl", **arguments)


def test_settings_are_a_mapping_a_list_or_a_file(small_prepared, tmp_path):
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"classical": {"l2": 0.5}}))
    forms = [
        {"settings": {"classical.l2": 0.5}},
        {"settings": ["classical.l2=0.5"]},
        {"config": file},
        {"config": setrnn.train(small_prepared, "br", config=file).config},
    ]
    found = [setrnn.train(small_prepared, "br", **form).config for form in forms]
    assert found[0].classical.l2 == 0.5
    assert all(each == found[0] for each in found)


def test_a_valid_file_cannot_be_added_to_prepared_data(small_prepared, tmp_path):
    with pytest.raises(DataError, match="prepared already"):
        setrnn.train(small_prepared, "br", valid=tmp_path / "valid.jsonl")


def test_ctrl_c_before_the_first_checkpoint_says_to_start_again(
    small_prepared, tmp_path, monkeypatch
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("setrnn.tagging.learn.train.train_system", interrupt)
    with pytest.raises(StoppedError, match="start again"):
        setrnn.train(small_prepared, "set-rnn", out=tmp_path / "m")
    with pytest.raises(KeyboardInterrupt):  # nothing is kept that could be resumed
        setrnn.train(small_prepared, "br", out=tmp_path / "m")


def test_the_warnings_of_training_stay_with_the_model(tmp_path, small_examples, monkeypatch):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    write_examples(small_examples["train"][:30], tmp_path / "news.jsonl")
    arguments = {"cut_valid": False, "out": tmp_path / "m", "device": "cpu", "settings": QUICK}
    setrnn.train(tmp_path / "news.jsonl", "sigmoid", **arguments)
    tagger = setrnn.load(tmp_path / "m")
    assert [each.split()[0] for each in tagger.warnings] == ["Trained", "30"]
    assert "without a valid part" in tagger.warnings[0]
    assert "training steps" in tagger.warnings[1]
    text = (tmp_path / "m" / "README.md").read_text()
    assert all(f"- warning: {each}" in text for each in tagger.warnings)
    assert setrnn.describe_model(tagger)["warnings"] == list(tagger.warnings)


def test_data_is_prepared_once_and_found_again(tmp_path, notes):
    file = tmp_path / "news.jsonl"
    file.write_text('{"text": "red apple", "labels": ["fruit"]}\n{"text": "unread\n' * 3)
    source = setrnn.Source(str(file), on_bad_row="skip")
    first = setrnn.prepare(source, out=tmp_path / "p")
    again = setrnn.prepare(source, out=tmp_path / "p")
    assert first.folder == again.folder
    assert first.folder.parent == tmp_path / "p"
    assert first.description["n_documents"] == {"train": 3}
    assert notes.warnings[:1] == ["3 rows could not be read and were skipped."]
    assert not list(first.folder.glob("word_vectors-*"))
    settings = {"vectors.dimensions": 4}
    with_vectors = setrnn.prepare(source, out=tmp_path / "p", settings=settings, vectors=True)
    assert list(with_vectors.folder.glob("word_vectors-*"))


def test_documents_in_memory_are_refused_with_the_way_out():
    with pytest.raises(DataError, match="SetRNNClassifier"):
        setrnn.train([setrnn.Example("1", "a text", ("x",))], "br")


@pytest.fixture
def opened(tmp_path, notes):
    """Prepare texts of a language, and open them with some settings."""

    def open_again(language, overrides=()):
        examples = [setrnn.Example(str(n), TEXTS[language], ("a",)) for n in range(4)]
        prepared = prepare({"train": lambda: examples}, tmp_path / "made", "x", TextSettings(), {})
        source, config = setrnn.Source(str(prepared.folder)), load_config(overrides=overrides)
        _, config = open_training_data(source, config, overrides)
        return config.text, " ".join(notes.texts)

    return open_again


@pytest.mark.parametrize("language", TEXTS)
def test_the_language_is_said_and_kept(opened, language):
    text, said = opened(language)
    assert text.language == language
    assert f"Language: {language.capitalize()}: its stop words" in said
    assert "other text settings" not in said


def test_another_language_than_that_of_the_folder_is_refused(opened):
    assert opened("german", ["text.language=de"])[0].language == "german"
    with pytest.raises(ConfigError, match="other text settings"):
        opened("german", ["text.language=french"])


@pytest.mark.parametrize(
    ("setting", "source", "expected"),
    [("slow", "ppmi", "slow"), ("frozen", "ppmi", "frozen"), ("frozen", "none", "tuned")],
)
def test_random_word_vectors_are_always_tuned(small_prepared, setting, source, expected):
    config = load_config(overrides=[f"model.word_vectors={setting}", f"vectors.source={source}"])
    assert fit_to_data(config, small_prepared).model.word_vectors == expected


def test_small_corpora_get_small_batches_and_more_epochs():
    assert [choose_batch_size(n) for n in (1, 6_400, 6_401, 22_000, 10**6)] == [16, 16, 32, 64, 128]
    found = [choose_epochs(n, choose_batch_size(n)) for n in (1, 100, 800, 1_600, 10**6)]
    assert found == [40, 40, 20, 10, 10]


def test_given_settings_are_kept_and_chosen_ones_are_not_chosen_again(small_prepared):
    given = load_config(overrides=["training.epochs=3", "training.batch_size=7"])
    fitted = fit_to_data(given, small_prepared)
    assert (fitted.training.epochs, fitted.training.batch_size) == (3, 7)
    assert fit_to_data(fitted, small_prepared) == fitted


@pytest.mark.parametrize("preset", ["default", "small", "paper", "transformer"])
def test_networks_are_small_on_a_cpu_unless_other_settings_are_named(preset):
    assert choose_preset(preset, "cpu") == ("small" if preset == "default" else preset)


def test_what_trains_without_a_preset_on_a_cpu_trains_small_networks(small_prepared):
    settings = {"vectors.source": "none", "vectors.dimensions": 8, "training.epochs": 1}
    tagger = setrnn.train(small_prepared, "sigmoid", settings=settings, device="cpu")
    small = load_config("small").model
    assert tagger.config.model.encoder_units == small.encoder_units
    assert small.encoder_units < load_config("default").model.encoder_units
