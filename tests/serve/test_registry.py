import gc
import shutil
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from setrnn.data.labels import LabelVocabulary
from setrnn.errors import ConfigError
from setrnn.models.folder import read_version
from setrnn.serve.problems import ProblemError
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.server import set_aside_objects
from setrnn.serve.settings import name_folders
from setrnn.tagging.tagger import load
from setrnn.tagging.trust import Calibration
from setrnn.tagging.trust.acceptance import Acceptance


@pytest.fixture
def folder(taggers, tmp_path):
    taggers["br"].save(tmp_path / "model")
    return tmp_path / "model"


def test_models_are_found_by_name_the_first_by_default(folder):
    registry = Registry({"one": folder, "two": folder}, "cpu")
    with pytest.raises(ProblemError, match="not-ready"):
        registry.find(None)
    registry.load()
    assert registry.find(None).name == "one"
    assert registry.find("two").name == "two"
    with pytest.raises(ConfigError, match="Did you mean 'two'"):
        registry.find("twoo")


def test_a_replaced_folder_is_loaded_and_what_was_begun_keeps_its_model(taggers, folder, notes):
    registry = Registry({"model": folder}, "cpu")
    registry.load()
    before = registry.find(None)
    registry.reload()
    assert registry.find(None) is before
    taggers["pcc"].save(folder)
    registry.reload()
    now = registry.find(None)
    assert notes.texts == [
        f"model: unchanged ({before.version}).",
        f"model: {now.version} replaces {before.version}.",
    ]
    assert now.tagger.method == "pcc"
    assert before.tagger.method == "br"
    assert before.tagger.tag(["x"])


def test_a_calibration_is_another_version_and_is_loaded(folder):
    registry = Registry({"model": folder}, "cpu")
    registry.load()
    before = registry.find(None)
    calibration = Calibration(
        100, acceptance={"set": Acceptance("set", 0.9, 0.9, 0.5, 0.5, 0.9, 50)}
    )
    replace(load(folder, "cpu"), calibration=calibration).save_calibration(folder)
    registry.reload()
    now = registry.find(None)
    assert now.version == read_version(folder) != before.version
    assert now.tagger.calibration == calibration


@pytest.mark.parametrize("damage", ["gone", "cut", "no config", "no JSON"])
def test_a_broken_folder_leaves_the_model_that_was_there(taggers, folder, damage, notes):
    registry = Registry({"model": folder}, "cpu")
    registry.load()
    before = registry.find(None)
    config, arrays = folder / "config.json", folder / "model.safetensors"
    if damage == "gone":
        shutil.rmtree(folder)
    elif damage == "cut":
        replace(taggers["br"], notes={"data": "other"}).save(folder)  # another version
        arrays.write_bytes(arrays.read_bytes()[:100])
    elif damage == "no config":
        config.unlink()
    else:
        config.write_text("{")
    registry.reload()
    (line,) = notes.texts
    assert line.startswith(f"model: not loaded, {before.version} stays.")
    assert "\n" not in line
    assert registry.find(None) is before


def test_labels_are_found_from_their_start_or_a_words(taggers):
    tagger = taggers["br"]
    names = ("Open Source", "open_data", "source", "Ödland", "re-open")
    labels = LabelVocabulary(names, (5, 4, 3, 2, 1))
    model = ServedModel("m", "v", replace(tagger, labels=labels))
    for prefix, wanted in {
        "open": [0, 1, 4],
        "SOURCE": [0, 2],
        "open s": [0],
        "öd": [3],
        "pen": [],
        "": [0, 1, 2, 3, 4],
    }.items():
        found = model.list_labels(prefix, 10).labels
        assert [each.label for each in found] == [names[label] for label in wanted]


@pytest.mark.parametrize("method", ["br", "set-rnn"])
def test_a_model_is_freed_though_collections_skip_it(taggers, tmp_path, method):
    taggers[method].save(tmp_path / "model")
    registry = Registry({"model": tmp_path / "model"}, "cpu")
    registry.load()
    system = weakref.ref(registry.find(None).tagger.system)
    try:
        set_aside_objects()
        del registry
        assert system() is None
    finally:
        gc.unfreeze()


def test_folders_are_named_by_themselves_or_otherwise(tmp_path, monkeypatch):
    (tmp_path / "a=b").mkdir()
    (tmp_path / "set-rnn-7" / "inner").mkdir(parents=True)
    (tmp_path / "current").symlink_to("set-rnn-7")  # a link is named by itself
    monkeypatch.chdir(tmp_path)
    assert name_folders(["models/one", "two=models/one", "a=b", ".", "current"]) == {
        "one": Path("models/one"),
        "two": Path("models/one"),
        "a=b": Path("a=b"),
        tmp_path.name: Path(),
        "current": Path("current"),
    }
    monkeypatch.chdir(tmp_path / "set-rnn-7" / "inner")
    assert list(name_folders([".."])) == ["set-rnn-7"]
    assert list(name_folders(["good=models/\udcff"])) == ["good"]


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        (["a/one", "b/one"], "Two models are named 'one'"),
        (["=folder"], "no valid name"),
        (["models/\udcff"], "no valid name"),  # not UTF-8
    ],
)
def test_names_that_cannot_be_used_are_refused(folders, said):
    with pytest.raises(ConfigError, match=said):
        name_folders(folders)
