"""A model as an MLflow model, by a stand-in for mlflow.pyfunc, which is not a dependency."""

import shutil
import sys
from types import ModuleType

import pandas as pd
import pytest

import setrnn.mlflow
from setrnn.errors import ConfigError, DataError

TEXT = "The ski race was cancelled because of the storm."


@pytest.fixture
def pyfunc(monkeypatch):
    """Keep what mlflow would: a copy of the data, and the module that loads it."""
    kept = {}

    def save_model(path, loader_module, data_path, pip_requirements):
        shutil.copytree(data_path, path)
        kept.update(path=path, module=loader_module, requirements=pip_requirements)

    mlflow = ModuleType("mlflow")
    mlflow.pyfunc = ModuleType("mlflow.pyfunc")
    mlflow.pyfunc.save_model = save_model
    mlflow.pyfunc.log_model = lambda name, **options: save_model(name, **options)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", mlflow.pyfunc)
    return kept


@pytest.mark.slow
def test_mlflow_gets_the_model_folder_and_loads_it(pyfunc, taggers, tmp_path):
    tagger = taggers["br"]
    setrnn.mlflow.save_model(tagger, tmp_path / "saved")
    setrnn.mlflow.log_model(tmp_path / "saved", name=str(tmp_path / "logged"))
    model = sys.modules[pyfunc["module"]]._load_pyfunc(pyfunc["path"])
    expected = [tagger.tag([TEXT])[0].as_dict()]
    assert model.predict([TEXT]) == expected
    assert model.predict(pd.DataFrame({"id": ["1"], "text": [TEXT]})) == expected
    assert pyfunc["requirements"] == [f"setrnn=={setrnn.__version__}"]


def test_input_that_is_not_a_list_of_texts_is_refused(taggers):
    model = setrnn.mlflow.TaggerModel(taggers["br"])
    with pytest.raises(DataError, match=r"Write \[text\]"):
        model.predict(TEXT)
    with pytest.raises(DataError, match="column text: it has id, body"):
        model.predict(pd.DataFrame({"id": ["1"], "body": [TEXT]}))


def test_mlflow_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match="pip install mlflow"):
        setrnn.mlflow.save_model("model", "saved")
