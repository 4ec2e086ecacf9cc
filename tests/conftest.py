"""What many tests share: small data and trained taggers, made once per test run."""

import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path

# Two test processes on two cores: more threads would slow each other down.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from filelock import FileLock
from hypothesis import HealthCheck, settings

from forked import forks
from hub_stand_in import WRITE, running_hub
from notes import collected_notes
from setrnn.cli import main
from setrnn.config import TextSettings
from setrnn.data import newsroom
from setrnn.data.cache import prepare
from setrnn.data.disk import whole_folder
from setrnn.data.prepared import Prepared
from setrnn.data.read import write_examples
from setrnn.methods import METHODS
from setrnn.tagging.learn.train import train
from setrnn.tagging.tagger import load
from small_taggers import MEMBERS, join_taggers, trained_tagger

torch.set_num_threads(1)  # if torch was imported before

# Background jobs of a shell ignore Ctrl-C, and so would the processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine must not fail a test.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40)
settings.register_profile("calm", calm)
settings.register_profile("quick", calm, max_examples=10)  # for `make check`
settings.load_profile("calm")

# One method per way to predict: the others differ in training only.
PREDICTORS = (
    "br",
    "br-support",
    "pcc",
    "seq2seq-rnn",
    "sgm",
    "set-rnn",
    "set-rnn-exact",
    "sigmoid",
    "mixture",
)
SIZES = {"train": 300, "valid": 60, "test": 60}


# A test that uses one of these trains a system, or needs a process, a browser or a service.
SLOW_FIXTURES = {
    "br_model",
    "browser",
    "built",
    "client",
    "command",
    "records",
    "served",
    "server",
    "small_prepared",
    "tagger",
    "taggers",
    "tiny",
    "train",
    "without_valid",
}
SLOW_PLACES = (
    "benchmarks",
    "blackbox",
    "cli",
    "comparison",
    "docs",
    "faults",
    "report/test_figures.py",
    "serve",
    "tagging",
    "tools",
    "test_methods.py",
)


FAULTS = Path(__file__).parent / "faults"


def pytest_ignore_collect(collection_path, config):
    """Do not import slow tests that are not run: their imports take seconds."""
    return True if config.option.markexpr == "not slow" and _is_slow(collection_path) else None


def pytest_collection_modifyitems(config, items):
    """Mark as slow all tests of trained systems, whole commands, services and figures.

    Of the fault suite, only the tests marked `short` run, unless it is asked for (`-m faults`).
    """
    is_whole = "faults" in (config.option.markexpr or "")
    for item in list(items):
        if item.path.is_relative_to(FAULTS):
            item.add_marker("faults")
            if not is_whole and item.get_closest_marker("short") is None:
                items.remove(item)
    for item in items:
        uses = getattr(item, "fixturenames", ())
        if _is_slow(item.path) or not SLOW_FIXTURES.isdisjoint(uses):
            item.add_marker("slow")


def _is_slow(path):
    place = path.relative_to(Path(__file__).parent)
    return any(place.is_relative_to(each) for each in SLOW_PLACES)


@pytest.fixture(scope="session", autouse=True)
def forked_processes():
    """Fork the processes that the package would spawn: importing torch takes seconds in each."""
    find = multiprocessing.get_context
    with pytest.MonkeyPatch.context() as patch:
        if sys.platform == "linux":
            patch.setattr(
                multiprocessing,
                "get_context",
                lambda kind=None: forks() if kind == "spawn" else find(kind),
            )
        yield


@pytest.fixture(scope="session")
def make_once(tmp_path_factory):
    """Make a folder once per test run: the first process makes it, the others wait for it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers

    def make(name, write):
        folder = shared / "made-once" / name
        folder.parent.mkdir(exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                write(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def small_examples():
    """The first few hundred items of the synthetic newsroom."""
    return {name: list(islice(newsroom.examples(name), n)) for name, n in SIZES.items()}


@pytest.fixture(scope="session")
def small_prepared(small_examples, make_once):
    """The same, prepared."""
    streams = {name: partial(iter, examples) for name, examples in small_examples.items()}

    def write(folder):
        prepare(streams, folder, "newsroom", TextSettings(), {"synthetic": True})

    return Prepared(make_once("newsroom", write))


class Taggers(Mapping):
    """A tagger of every method, trained when it is first used, by one process for all."""

    def __init__(self, prepared, make_once):
        self.prepared, self.make_once = prepared, make_once
        self.load = cache(self._load)

    def _load(self, name):
        def write(folder):
            if METHODS[name].is_mixture:
                tagger = join_taggers([self[member] for member in MEMBERS])
            else:
                tagger = trained_tagger(self.prepared, name)
            tagger.save(folder)

        return load(self.make_once(name, write), device="cpu")

    def __getitem__(self, name):
        return self.load(name)

    def __iter__(self):
        return iter(PREDICTORS)

    def __len__(self):
        return len(PREDICTORS)


@pytest.fixture(scope="session")
def taggers(small_prepared, make_once):
    """A trained tagger of every kind, by its method."""
    return Taggers(small_prepared, make_once)


@pytest.fixture(scope="session", params=PREDICTORS)
def tagger(request, taggers):
    """Each trained tagger in turn."""
    return taggers[request.param]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A stand-in for the Hugging Face hub, with an empty cache and a token that may write."""
    from huggingface_hub import constants

    with running_hub() as running:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.removeprefix(constants.ENDPOINT)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", running.address + template)
        monkeypatch.setattr(constants, "ENDPOINT", running.address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", WRITE)
        yield running


@pytest.fixture(scope="session")
def test_texts(small_examples):
    return [example.text for example in small_examples["test"]]


@pytest.fixture(scope="session")
def test_features(small_examples):
    return [example.features for example in small_examples["test"]]


@pytest.fixture
def notes():
    """What the library notes during the test: `notes.texts`, `notes.warnings`."""
    with collected_notes() as found:
        yield found


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def error_lines(self):
        return [line for line in self.err.splitlines() if line.startswith("error:")]


@pytest.fixture
def setrnn(monkeypatch, capsys, tmp_path_factory):
    """Run a command as a shell does; return its exit code and what it printed."""
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["setrnn", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        code = stop.value.code
        return Result(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def corpus(make_once):
    """A folder with small train, valid and test parts."""

    def write(folder):
        with whole_folder(folder) as target:
            for split, size in {"train": 400, "valid": 60, "test": 80}.items():
                write_examples(islice(newsroom.examples(split), size), target / f"{split}.jsonl")

    return make_once("corpus", write)


@pytest.fixture(scope="session")
def br_model(corpus, make_once, tmp_path_factory):
    """A BR model; copy it before changing it."""

    def write(folder):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SETRNN_CACHE", str(tmp_path_factory.mktemp("cache")))
            train(corpus, "br", out=folder)

    return make_once("br-of-corpus", write)


@pytest.fixture
def trained(br_model, tmp_path):
    """A folder with a trained BR model."""
    return shutil.copytree(br_model, tmp_path / "model")
