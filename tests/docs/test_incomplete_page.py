"""The commands and the Python of docs/incomplete.md, run as they are printed."""

import json
import re
import shlex
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from doc_pages import run_here
from sklearn.base import clone

from setrnn.data import newsroom
from setrnn.data.read import write_examples

PAGE = (Path(__file__).parents[2] / "docs" / "incomplete.md").read_text(encoding="utf-8")
MARK = "<!-- run by tests/docs/test_incomplete_page.py -->\n"
BLOCKS = re.findall(MARK + r"((?:    setrnn .*\n)+)", PAGE)
PYTHON = re.search(MARK + r"```python\n(.*?)```", PAGE, re.S)


def hide(example, number):
    if number % 3 == 1:
        return replace(example, labels=example.labels[::2], complete=False)
    if number % 3 == 2:
        return replace(example, labels=example.labels[1:], unknown=example.labels[:1])
    return example


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with incomplete documents, and a table of others."""
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for split, size in {"train": 120, "valid": 30, "test": 30}.items():
        examples = enumerate(islice(newsroom.examples(split), size))
        hidden = [hide(each, number) for number, each in examples]
        write_examples(hidden, tmp_path / "news" / f"{split}.jsonl")
    lines = [
        f"text {n},{'ab'[n % 2]},{'c' * (n % 3 == 0)},{'no' * (n % 5 == 0)}" for n in range(60)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["text,labels,todo,done", *lines]) + "\n")
    return tmp_path


def test_the_commands_do_what_the_page_says(place, monkeypatch, capsys):
    printed = {}
    for line in "".join(BLOCKS).splitlines():
        found = run_here(shlex.split(line), monkeypatch, capsys)
        printed[line.strip()] = found.out + found.err
    assert "unknown labels" in printed["setrnn data info news/"]
    assert "80 of 120" in printed["setrnn train news/ --method br --out model"]
    assert "neither for nor against" in printed["setrnn evaluate model news/"]
    for file in ("train.jsonl", "test.jsonl"):
        assert (place / "copy" / file).read_bytes() == (place / "news" / file).read_bytes()
    settings = [
        json.loads((place / model / "config.json").read_text())["config"]["training"]["forgotten"]
        for model in ("model", "neutral")
    ]
    assert settings == [-1, 1]


def test_the_python_runs(place):
    names = {}
    exec(PYTHON.group(1), names)
    assert names["evaluation"].scores.n_incomplete == 20
    said = [json.loads(line) for line in (place / "said.jsonl").read_text().splitlines()]
    assert said[0]["unknown"] == ["inflation"]
    assert said[1]["complete"] is False
    classifier, labels = names["classifier"], names["labels"]
    plain = clone(classifier).fit(names["texts"], labels)
    probs = (each.predict_proba(names["texts"]) for each in (classifier, plain))
    assert (next(probs) != next(probs)).any()
