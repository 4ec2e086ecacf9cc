"""The commands and the Python of docs/hierarchies.md, run as they are printed."""

import json
import re
import shlex
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from doc_pages import run_here

from fake_runs import install_fake_report, install_fake_runs
from setrnn.comparison.run import run as run_system
from setrnn.data import newsroom
from setrnn.data.read import read_hierarchy, write_examples
from setrnn.data.read.label_files import EMBEDDED_FILE

PAGE = (Path(__file__).parents[2] / "docs" / "hierarchies.md").read_text(encoding="utf-8")
MARK = "<!-- run by tests/docs/test_hierarchies_page.py -->\n"
BLOCKS = re.findall(MARK + r"((?:    setrnn .*\n)+)", PAGE)
PYTHON = re.search(MARK + r"```python\n(.*?)```", PAGE, re.S)
TREE = read_hierarchy("newsroom")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with data that is closed, data of the lowest labels only, and texts."""
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for split, size in {"train": 160, "valid": 40, "test": 40}.items():
        whole = list(islice(newsroom.examples(split), size))
        write_examples(whole, tmp_path / "news" / f"{split}.jsonl")
        leaves = (replace(each, labels=lowest(each.labels)) for each in whole)
        write_examples(leaves, tmp_path / "leaves" / f"{split}.jsonl")
    (tmp_path / "parents.csv").write_bytes(EMBEDDED_FILE.read_bytes())
    rows = [{"text": each.text, "checked": ["copper"]} for each in whole]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def lowest(labels):
    above = {each for label in labels for each in TREE.ancestors(label)}
    return tuple(label for label in labels if label not in above)


def read_sets(file):
    return [json.loads(line)["labels"] for line in file.read_text().splitlines()]


def test_the_commands_do_what_the_page_says(place, monkeypatch, capsys):
    install_fake_runs(monkeypatch, run_system)
    install_fake_report(monkeypatch)
    printed = {}
    for line in "".join(BLOCKS).splitlines():
        found = run_here(shlex.split(line), monkeypatch, capsys)
        printed[line.strip()] = found.out + found.err
    assert "closed upwards" in printed["setrnn data info news/ --hierarchy parents.csv"]
    assert "bring those above them" in printed["setrnn show model"]
    assert "hierarchical" in printed["setrnn evaluate model news/"]
    assert "hierarchical" in next(text for line, text in printed.items() if "compare" in line)
    assert all(map(TREE.is_closed, read_sets(place / "tagged.jsonl")))
    assert not all(map(TREE.is_closed, read_sets(place / "loose.jsonl")))
    assert all({"copper", "economy"} <= set(each) for each in read_sets(place / "completed.jsonl"))
    assert all(map(TREE.is_closed, read_sets(place / "whole" / "train.jsonl")))


def test_the_python_gives_what_its_comments_say(place):
    names = {}
    exec(PYTHON[1], names)
    assert names["tree"].close(["harbour-cup"]) == ("harbour-cup", "football", "sport")
    assert names["tagger"].keeps_closed
    assert TREE.is_closed(names["labels"])
    assert {"harbour-cup", "football", "sport"} <= set(names["completed"])
    assert 0 < names["evaluation"].hierarchical.hierarchical_f1 < 1
    assert names["closing"].keeps_closed
    assert list(names["classifier"].classes_) == ["football", "sport", "weather"]
