import shutil
import sys
from dataclasses import dataclass
from itertools import islice

import pytest

from setrnn.cli import main
from setrnn.data import newsroom
from setrnn.data.disk import whole_folder
from setrnn.data.read import write_examples
from setrnn.tagging.learn.train import train


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def error_lines(self):
        return [line for line in self.err.splitlines() if line.startswith("error:")]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def setrnn(monkeypatch, capsys):
    """Run a command as a shell does; return its exit code and what it printed."""

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
