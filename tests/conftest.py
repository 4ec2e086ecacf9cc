"""Small things that many tests share, made once a session."""

from functools import partial
from itertools import islice

import pytest
from hypothesis import HealthCheck, settings

from setrnn.config import Config, TextSettings
from setrnn.data.prepare import prepare
from setrnn.datasets import newsroom
from setrnn.methods import METHODS
from setrnn.tagger import Tagger

# A busy machine is no failure of the code.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")

SIZES = {"train": 300, "valid": 60, "test": 60}


@pytest.fixture(scope="session")
def small_examples():
    """The first few hundred items of the synthetic newsroom."""
    return {name: list(islice(newsroom.examples(name), n)) for name, n in SIZES.items()}


@pytest.fixture(scope="session")
def small_prepared(small_examples, tmp_path_factory):
    """The same, prepared."""
    streams = {name: partial(iter, examples) for name, examples in small_examples.items()}
    target = tmp_path_factory.mktemp("prepared") / "newsroom"
    return prepare(streams, target, "newsroom", TextSettings(), {"synthetic": True})


@pytest.fixture(scope="session")
def taggers(small_prepared):
    """A trained tagger of every method."""
    config = Config()
    return {
        name: Tagger(
            method=name,
            config=config,
            encoder=small_prepared.encoder,
            labels=small_prepared.labels,
            system=method.train(small_prepared, config, lambda n_labels: None),
            notes={"data": "newsroom, synthetic"},
        )
        for name, method in METHODS.items()
    }


@pytest.fixture(scope="session", params=METHODS)
def tagger(request, taggers):
    """One trained tagger after the other."""
    return taggers[request.param]


@pytest.fixture(scope="session")
def test_texts(small_examples):
    return [example.text for example in small_examples["test"]]


@pytest.fixture(scope="session")
def test_features(small_examples):
    return [example.features for example in small_examples["test"]]
