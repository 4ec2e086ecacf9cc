"""Pretrained encoders: two learning rates, and any precision."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from tiny_runs import SIZES, prepared_of, tiny_config

import setrnn
from setrnn.config import TextSettings
from setrnn.methods import find_method
from setrnn.tagging.tagger import Tagger
from setrnn.training.start import TrainOptions, train_system
from tiny_transformers import save_transformer

pytestmark = pytest.mark.slow
METHODS = ("sigmoid", "set-rnn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_transformer(tmp_path_factory.mktemp("transformer") / "tiny")


@pytest.fixture(scope="module")
def data(folder, tmp_path_factory):
    text = TextSettings(tokenizer=str(folder), max_tokens=32)
    return prepared_of(SIZES, tmp_path_factory.mktemp("subwords") / "newsroom", text)


@pytest.fixture
def train_with(train, data, folder):
    path = ("encoder.name=transformer", f"encoder.path={folder}")
    return partial(train, *path, "text.max_tokens=32", data=data)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_all_weights_learn_in_either_precision(train_with, method, precision):
    first = train_with("training.learning_rate=1e-12", "encoder.learning_rate=1e-12", method=method)
    run = train_with(
        f"training.precision={precision}",
        "encoder.learning_rate=0.01",
        "training.learning_rate=0.01",
        "training.epochs=4",
        method=method,
    )
    assert run.losses[-1] < run.losses[0]
    for name, weight in run.weights.items():
        is_fixed = name == "encoder.architecture"
        assert weight.isfinite().all(), name
        # Keys' biases change no attention; words that do not occur do not learn.
        if not name.endswith("key.bias"):
            assert torch.equal(weight, first.weights[name]) == is_fixed, name


def test_the_transformer_has_a_rate_of_its_own(train_with):
    run = train_with("encoder.learning_rate=1e-12", "training.learning_rate=0.01")
    still = train_with("encoder.learning_rate=1e-12", "training.learning_rate=1e-12")
    for name, weight in run.weights.items():
        change = (weight.float() - still.weights[name].float()).abs().max()
        assert (change > 1e-4) == (not name.startswith("encoder.")), name


@pytest.mark.parametrize("method", METHODS)
def test_a_model_is_loaded_without_the_folder_it_came_from(data, folder, tmp_path, method):
    settings = tiny_config("encoder.name=transformer", f"encoder.path={folder}")
    config = replace(settings, text=data.text_settings)
    trained = train_system(find_method(method), data, config, TrainOptions("cpu"))
    tagger = Tagger(method, config, data.encoder, data.labels, trained.system)
    gone = replace(config.encoder, path=str(tmp_path / "gone"))
    tagger = replace(tagger, config=replace(config, encoder=gone))
    tagger.save(tmp_path / "model")
    loaded = setrnn.load(tmp_path / "model", device="cpu")
    texts = ["The court and the police.", "", "rain " * 99]
    features = [["sport"], [], ["film", "bank"]]
    assert loaded.tag(texts, top=3, features=features) == tagger.tag(
        texts, top=3, features=features
    )
    assert loaded.explain("Raining: clubs").read == ("Raining", "clubs")
