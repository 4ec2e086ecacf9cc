"""The examples in the docstrings of the package run, and print what they say."""

import doctest
import shutil
from importlib import import_module
from pathlib import Path

import pytest

import setrnn

PACKAGE = Path(setrnn.__file__).parent
FILES = sorted(file for file in PACKAGE.rglob("*.py") if ">>> " in file.read_text(encoding="utf-8"))
NAMES = [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in FILES]


@pytest.fixture
def train_once(make_once, monkeypatch):
    """Train what many examples train, a classical model of newsroom, once for all."""
    train = setrnn.train

    def make(data, method=None, out=None, **options):
        if data != "newsroom" or method is None or options:
            return train(data, method, out=out, **options)
        folder = make_once(f"example-{method}", lambda folder: train(data, method, out=folder))
        return setrnn.load(folder if out is None else shutil.copytree(folder, out))

    monkeypatch.setattr(setrnn, "train", make)


@pytest.mark.slow
@pytest.mark.usefixtures("train_once")
@pytest.mark.parametrize("name", [each.removesuffix(".__init__") for each in NAMES])
def test_the_examples_of_a_module_run(name, tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Newsroom is prepared once for all examples.
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path_factory.getbasetemp() / "examples"))
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(import_module(name), optionflags=options)
    assert result.attempted > 0
    assert result.failed == 0
