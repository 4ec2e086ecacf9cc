"""Small things that many tests share, made once a session."""

import os
import signal
from collections.abc import Mapping
from functools import cache, partial
from itertools import islice

# Two test processes on two cores: more threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings

from setrnn.config import TextSettings
from setrnn.data import newsroom
from setrnn.data.prepared import prepare
from small_taggers import trained_tagger

torch.set_num_threads(1)  # where torch was loaded before

# A shell's background jobs ignore Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure of the code.
settings.register_profile("calm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calm")

# Of each way to predict, one; the other recurrent systems only train otherwise.
PREDICTORS = (
    "br",
    "br-support",
    "pcc",
    "seq2seq-rnn",
    "sgm",
    "set-rnn",
    "set-rnn-exact",
    "sigmoid",
)
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


class Taggers(Mapping):
    """A tagger of every method, trained when it is first asked for."""

    def __init__(self, prepared):
        self.train = cache(partial(trained_tagger, prepared))

    def __getitem__(self, name):
        return self.train(name)

    def __iter__(self):
        return iter(PREDICTORS)

    def __len__(self):
        return len(PREDICTORS)


@pytest.fixture(scope="session")
def taggers(small_prepared):
    """A trained tagger of every kind, by its method."""
    return Taggers(small_prepared)


@pytest.fixture(scope="session", params=PREDICTORS)
def tagger(request, taggers):
    """One trained tagger after the other."""
    return taggers[request.param]


@pytest.fixture(scope="session")
def test_texts(small_examples):
    return [example.text for example in small_examples["test"]]


@pytest.fixture(scope="session")
def test_features(small_examples):
    return [example.features for example in small_examples["test"]]
