"""The names of `setrnn`: all are there, and the import alone loads no other library."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import setrnn
from setrnn.errors import SetRNNError
from setrnn.tagging.estimator import SetRNNClassifier


def test_importing_setrnn_lists_its_names_and_imports_no_other_library():
    code = (
        "import sys; print(*sys.modules); import setrnn; print(*sys.modules); print(*dir(setrnn))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, modules, names = (set(line.split()) for line in done.stdout.splitlines())
    assert "setrnn" in modules
    roots = {name.split(".")[0] for name in modules - before}
    assert roots - set(sys.stdlib_module_names) == {"setrnn"}
    assert set(setrnn.__all__) <= names


def test_public_names_are_those_of_their_modules():
    for name in setrnn.__all__:
        assert getattr(setrnn, name) is not None
    assert setrnn.SetRNNClassifier is SetRNNClassifier
    assert setrnn.SetRNNError is SetRNNError
    with pytest.raises(AttributeError, match="module 'setrnn' has no attribute 'Taggr'"):
        setrnn.Taggr  # noqa: B018


def test_the_version_is_the_same_everywhere():
    root = Path(__file__).parents[1]
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    version, date = re.search(r"^## (\S+) \((\S+)\)$", changelog, re.M).groups()
    assert version == setrnn.__version__
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {version}\ndate-released: {date}\n" in citation
