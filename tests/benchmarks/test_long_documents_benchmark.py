"""Documents are made long as the benchmark says, and each way reads what its name says."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from setrnn.data.example import Example
from setrnn.data.formats.write import write_examples

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "long_documents.py"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))  # it shares archives with short_texts
    specification = importlib.util.spec_from_file_location("long_documents", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "long_documents", module)
    specification.loader.exec_module(module)
    return module


def make_examples(n):
    return [Example(str(i), f"text{i} end", (f"label {i % 3}", "all")) for i in range(n)]


def test_joined_documents_have_all_labels_and_each_original_is_in_as_many(bench):
    joined = [*bench.join(make_examples(9), n_joined=2, n_times=3)]
    assert len(joined) == 12  # the ninth is left over
    words = [word for each in joined for word in each.text.split() if word != "end"]
    assert all(words.count(f"text{i}") <= 3 for i in range(9))
    for each in joined:
        own = [int(word.removeprefix("text")) for word in each.text.split() if word != "end"]
        assert len(set(own)) == 2
        assert set(each.labels) == {"all", *(f"label {i % 3}" for i in own)}
    assert len({each.id for each in joined}) == 12


def test_a_preamble_changes_neither_the_end_nor_the_labels(bench):
    examples = make_examples(20)
    behind = [*bench.put_behind(examples, ["noise"], 9)]
    for before, after in zip(examples, behind, strict=True):
        assert after.text.endswith(before.text)
        assert after.labels == before.labels
    assert len({each.text.count("noise") for each in behind}) > 3


def test_cells_are_prepared_run_and_put_into_a_table(bench, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "SPLIT_OFF", 120)
    cell = bench.Cell("reuters21578", 2, 3, 6)
    monkeypatch.setattr(bench, "CELLS", {"reuters": cell})
    rows = [
        Example(str(i), "rain club " * (1 + i % 3) + f"end{i % 2}", (f"label {i % 2}",))
        for i in range(240)
    ]
    place = tmp_path / "data" / "reuters21578"
    place.mkdir(parents=True)
    write_examples(rows, place / "train.jsonl")
    write_examples(rows, place / "test.jsonl")
    cells, results = tmp_path / "cells", tmp_path / "results"
    make = ["prepare", str(cells), "--data", str(tmp_path / "data"), "--only", "reuters"]
    bench.main([*make, "--set", "vectors.source=none"])
    assert "reuters-gru-cut" in capsys.readouterr().out
    monkeypatch.setattr(bench.subprocess, "run", lambda command, **_: in_process(bench, command))
    run = ["run", str(cells), str(results), "--only", "reuters", "--methods", "br", "--seeds", "1"]
    bench.main([*run, "--device", "cpu", "--ways", "cut", "windows"])
    found = {each["way"]: each for each in bench.read_results(results)}
    assert found["cut"]["cut"]["test"] == 1.0
    assert found["windows"]["cut"]["test"] == 0.3333
    longest = json.loads((cells / "reuters-gru-longest.json").read_text())
    assert 0 < len(longest["test"]) < 240
    table = bench.format_table([*found.values()])
    assert len(table.splitlines()) == 4
    assert "| reuters | gru | `br` | windows |" in table


def in_process(bench, command):
    bench.main(command[2:])
    return bench.subprocess.CompletedProcess(command, 0, "done", "")
