import ast
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import setrnn
from setrnn.config import Config
from setrnn.data.labels import LabelVocabulary
from setrnn.errors import ConfigError, ModelError
from setrnn.models import folder as model_folder
from setrnn.models.folder import (
    FORMAT,
    SavedModel,
    check_model_place,
    load_model,
    read_version,
    save_model,
)
from setrnn.tagging.tagger import load
from setrnn.tagging.trust import Calibration

FILES = ("config.json", "model.safetensors", "tokenizer.json", "labels.json")
ALL = {*FILES, "README.md"}


@pytest.fixture(scope="module")
def saved_folder(taggers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    taggers["br-support"].save(folder)
    return folder


@pytest.fixture
def folder(saved_folder, tmp_path):
    """A copy of a model, to be damaged."""
    return shutil.copytree(saved_folder, tmp_path / "model")


def refused(folder, *words):
    """Load, expect a refusal, and check what it says."""
    with pytest.raises(ModelError) as error:
        load(folder)
    message = str(error.value)
    assert message
    assert "\n" not in message
    for word in (str(folder), *words):
        assert word in message


def test_save_and_load_change_no_bit(tagger, test_texts, test_features, tmp_path):
    tagger.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    before = tagger.predict_proba(test_texts, test_features)
    np.testing.assert_array_equal(loaded.predict_proba(test_texts, test_features), before)
    assert loaded.tag(test_texts, top=4, features=test_features) == tagger.tag(
        test_texts, top=4, features=test_features
    )
    for name, array in tagger.system.arrays().items():
        np.testing.assert_array_equal(loaded.system.arrays()[name], array)
        assert loaded.system.arrays()[name].dtype == array.dtype
    assert loaded.config == tagger.config
    assert loaded.labels == tagger.labels
    assert loaded.method == tagger.method
    assert loaded.notes == tagger.notes


def test_saving_what_was_loaded_gives_the_same_bytes(saved_folder, tmp_path):
    load(saved_folder).save(tmp_path / "again")
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (saved_folder / name).read_bytes()


def test_a_model_is_replaced_whole_but_not_the_readme_of_a_person(taggers, folder, tmp_path):
    (folder / "README.md").write_text("Tags the news.", encoding="utf-8")
    taggers["br"].save(folder)
    assert load(folder).method == "br"
    assert (folder / "README.md").read_text(encoding="utf-8") == "Tags the news."
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["thesis.txt", "README.md", None])
def test_a_folder_that_is_not_a_model_is_not_replaced(taggers, tmp_path, name):
    place = tmp_path / "model"
    precious = place if name is None else place / name  # a file in the place of the folder
    precious.parent.mkdir(exist_ok=True)
    precious.write_text("years of work")
    with pytest.raises(ModelError, match="not a model"):
        taggers["br"].save(place)
    assert precious.read_text() == "years of work"


def test_other_files_beside_a_model_are_not_lost(taggers, folder):
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match="thesis"):
        taggers["br"].save(folder)
    assert (folder / "thesis.txt").read_text() == "years of work"


TRY_AND_DIE = """
import os, signal, sys
from pathlib import Path
from setrnn.models.folder import check_model_place
def die(event, _):
    if event == "os.rmdir":
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(die)
check_model_place(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("name", ["model", "deep/er/model"])
def test_a_check_of_a_place_that_was_killed_is_tidied_up_by_the_next(tmp_path, name):
    code = [sys.executable, "-c", TRY_AND_DIE, str(tmp_path / name)]
    assert subprocess.run(code, check=False).returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir())
    check_model_place(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_arrays_of_any_shape_and_layout_come_back(taggers, tmp_path):
    arrays = {
        "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "nothing": np.zeros((0, 3), dtype=np.float32),
        "strided": np.arange(10, dtype=np.int32)[::3],
        "one": np.array([7]),
    }
    encoder, labels = taggers["br"].encoder, LabelVocabulary((), ())
    model = SavedModel("br", Config(seed=5), encoder, labels, arrays, {"é": [1]})
    save_model(tmp_path / "model", model)
    loaded = load_model(tmp_path / "model")
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], array)
        assert loaded.arrays[name].dtype == array.dtype
    assert loaded.notes == {"é": [1]}
    assert loaded.config.seed == 5
    assert len(loaded.labels) == 0


def test_a_folder_without_a_model_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for name, words in (("absent", "no such"), ("file", "a file"), ("empty", "no config.json")):
        refused(tmp_path / name, words)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing_or_cut_short_is_named(folder, name):
    content = (folder / name).read_bytes()
    for length in (0, 1, len(content) // 2, len(content) - 1):
        (folder / name).write_bytes(content[:length])
        refused(folder, name)
    (folder / name).unlink()
    refused(folder, name)


GARBAGE = {
    "a list": b"[]",
    "no fields": b"{}",
    "a format without end": b'{"format": 1e999}',
    "fields of other kinds": b'{"format": 3, "method": [], "config": [], "notes": 3, "files": []}',
    "no seals": b'{"format": 3, "method": "br", "config": {}, "notes": {},'
    b' "files": {"model.safetensors": {}}}',
    "nested without end": b"[" * 100_000,
    "not text": b"\xff\xfe\x00\x80",
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_config_of_garbage_is_refused(folder, content):
    (folder / "config.json").write_bytes(content)
    refused(folder, "config.json")


@pytest.mark.parametrize("version", [FORMAT - 1, FORMAT + 1])
def test_another_format_is_refused_with_the_way_out(taggers, tmp_path, monkeypatch, version):
    with monkeypatch.context() as other:
        other.setattr("setrnn.models.folder.FORMAT", version)
        taggers["br"].save(tmp_path / "model")
    refused(tmp_path / "model", "another version", "Train the model again")
    taggers["br"].save(tmp_path / "model")
    assert load(tmp_path / "model").method == "br"


@pytest.mark.parametrize(
    "config", [{"text": {"max_word": 3}}, {"text": 3}, {"seed": "x"}, [], None, {"new": {}}]
)
def test_settings_this_version_does_not_know_are_refused(taggers, tmp_path, monkeypatch, config):
    with monkeypatch.context() as future:
        future.setattr("setrnn.models.folder.to_dict", lambda _: config)
        taggers["br"].save(tmp_path / "model")
    refused(tmp_path / "model")


@pytest.mark.parametrize("method", ["set-transformer", "pcc"])
def test_a_method_that_is_unknown_or_does_not_fit_is_refused(taggers, tmp_path, method):
    replace(taggers["br"], method=method).save(tmp_path / "model")
    refused(tmp_path / "model")


def test_no_module_can_load_a_pickle():
    forbidden = {"pickle", "cPickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"}
    sources = list(Path(setrnn.__file__).parent.rglob("*.py"))
    assert len(sources) > 20
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "load":
                    assert ast.unparse(node.func) != "torch.load", source
                for each in node.keywords:
                    if each.arg == "allow_pickle":
                        assert ast.unparse(each.value) == "False", source
            assert not {name.partition(".")[0] for name in names} & forbidden, source


def test_a_model_that_is_replaced_while_it_is_read_is_read_again(taggers, folder, monkeypatch):
    check, new = model_folder._check, taggers["br"]

    def replace_first(file, seal):
        monkeypatch.undo()
        new.save(folder)
        check(file, seal)

    monkeypatch.setattr("setrnn.models.folder._check", replace_first)
    assert load(folder).method == "br"


def calibrated(folder):
    """Write a calibration into a model folder."""
    return replace(load(folder), calibration=Calibration(5)).save_calibration(folder)


def test_a_calibration_changes_the_version_and_no_other_file(folder, tmp_path):
    before = {name: (folder / name).read_bytes() for name in FILES if name != "config.json"}
    first = load(folder).version
    assert calibrated(folder).version == read_version(folder) == load(folder).version != first
    assert load(folder).calibration.n_documents == 5
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert {path.name for path in folder.iterdir()} == {*ALL, "calibration.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_calibration_of_what_is_no_longer_there_is_not_written(taggers, folder):
    first, second = load(folder), load(folder)
    now = replace(first, calibration=Calibration(5)).save_calibration(folder)
    with pytest.raises(ModelError, match="changed"):
        replace(second, calibration=Calibration(6)).save_calibration(folder)
    assert load(folder).calibration.n_documents == 5
    replace(now, calibration=Calibration(7)).save_calibration(folder)
    taggers["br"].save(folder)
    with pytest.raises(ModelError, match=r"changed.*Calibrate it again"):
        replace(now, calibration=Calibration(8)).save_calibration(folder)
    assert load(folder).calibration is None


def test_only_a_tagger_of_a_folder_with_a_calibration_saves_it(taggers, folder):
    with pytest.raises(ConfigError, match=r"setrnn\.calibrate"):
        load(folder).save_calibration(folder)
    for tagger in (replace(taggers["br"], version=""), taggers["set-rnn"].with_beam_width(2)):
        with pytest.raises(ConfigError, match="not in a folder"):
            replace(tagger, calibration=Calibration(5)).save_calibration(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"n_documents": 5}', None])
def test_a_calibration_that_is_not_that_of_the_model_is_refused(folder, text):
    calibrated(folder)
    if text is None:
        (folder / "calibration.json").unlink()
    else:
        (folder / "calibration.json").write_text(text)
    refused(folder, "calibration.json")
