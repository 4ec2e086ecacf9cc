"""`setrnn.train` and `setrnn.prepare`: what they refuse and when, and the forms of settings."""

import json

import pytest

import setrnn
from setrnn.config import Config
from setrnn.errors import ConfigError, DataError, ModelError, StoppedError


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"method": "bre"}, ConfigError, "Did you mean 'br'"),
        ({"method": "set-rnn", "device": "gpu"}, ConfigError, "no device 'gpu'"),
        ({"method": "br", "settings": ["classical.l1=much"]}, ConfigError, "must be a number"),
        ({"method": "br", "config": "nowhere.json"}, ConfigError, r"nowhere\.json"),
        ({"method": "br", "config": Config(), "seed": 1}, ConfigError, "not both"),
        ({"method": "br", "resume": True}, ConfigError, "resume"),
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

    monkeypatch.setattr("setrnn.tagging.learn.one_system.train_system", interrupt)
    with pytest.raises(StoppedError, match="start again"):
        setrnn.train(small_prepared, "set-rnn", out=tmp_path / "m")
    with pytest.raises(KeyboardInterrupt):  # nothing is kept that could be resumed
        setrnn.train(small_prepared, "br", out=tmp_path / "m")


def test_data_is_prepared_once_and_found_again(tmp_path):
    file = tmp_path / "news.jsonl"
    file.write_text('{"text": "red apple", "labels": ["fruit"]}\n{"text": "unread\n' * 3)
    source = setrnn.Source(str(file), on_bad_row="skip")
    notes = []
    first = setrnn.prepare(source, out=tmp_path / "p", on_progress=notes.append)
    again = setrnn.prepare(source, out=tmp_path / "p")
    assert first.folder == again.folder
    assert first.folder.parent == tmp_path / "p"
    assert first.description["n_documents"] == {"train": 3}
    assert [each.text for each in notes if getattr(each, "is_warning", False)] == [
        "3 rows could not be read and were skipped."
    ]
    assert not list(first.folder.glob("word_vectors-*"))
    settings = {"vectors.dimensions": 4}
    with_vectors = setrnn.prepare(source, out=tmp_path / "p", settings=settings, vectors=True)
    assert list(with_vectors.folder.glob("word_vectors-*"))


def test_documents_in_memory_are_refused_with_the_way_out():
    with pytest.raises(DataError, match="SetRNNClassifier"):
        setrnn.train([setrnn.Example("1", "a text", ("x",))], "br")


def test_resuming_needs_the_folder_of_the_run():
    with pytest.raises(ConfigError, match="resume needs out"):
        setrnn.train("newsroom", "set-rnn", resume=True)


def test_results_are_described_in_one_line(taggers):
    assert repr(taggers["br"]).startswith("<Tagger br: ")
    assert "\n" not in repr(taggers["br"])


def test_a_path_is_not_taken_for_a_model():
    for use in (setrnn.evaluate, setrnn.calibrate):
        with pytest.raises(ConfigError, match=r"setrnn\.load"):
            use("model", "newsroom")


def test_documents_must_be_examples(taggers):
    with pytest.raises(DataError, match="Example"):
        setrnn.evaluate(taggers["br"], [("invoice", ["billing"])])
