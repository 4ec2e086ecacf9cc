import sys
from dataclasses import dataclass
from itertools import islice

import pytest

from setrnn.cli import main
from setrnn.data import newsroom
from setrnn.data.formats import write_examples


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
    """Run a command as from a shell: its exit code and what it printed."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["setrnn", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        code = stop.value.code
        return Result(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder with small train, valid and test parts."""
    folder = tmp_path_factory.mktemp("corpus")
    for split, size in {"train": 400, "valid": 60, "test": 80}.items():
        write_examples(islice(newsroom.examples(split), size), folder / f"{split}.jsonl")
    return folder


@pytest.fixture
def trained(setrnn, corpus, tmp_path):
    """A folder with a trained BR model."""
    model = tmp_path / "model"
    assert setrnn("train", corpus, "--method", "br", "--out", model).code == 0
    return model
