"""Cells are cut, carried and judged as the benchmark says."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import setrnn
from setrnn.config import VectorSettings
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.data.read.write import write_examples
from setrnn.data.vectors import word_vectors
from small_taggers import SMALL_OVERRIDES

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "short_texts.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
short = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(short)
SETTINGS = ["vectors.dimensions=8", "vectors.epochs=1", "text.min_count=1"]
CELL = "debtags-500-8"


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """One cell, made from a dataset without a valid part."""
    monkeypatch.setattr(short, "SPLIT_OFF", 120)
    words = ["alpha beta gamma delta", "one two three four"]
    documents = [
        Example(str(n), f"{words[n % 2]} {words[n % 2]} end", (f"label {n % 2}",))
        for n in range(180)
    ]
    (tmp_path / "data" / "debtags").mkdir(parents=True)
    write_examples(documents, tmp_path / "data" / "debtags" / "train.jsonl")
    short.prepare_cells(tmp_path / "data", tmp_path / "cells", [CELL], SETTINGS)
    return tmp_path / "cells"


def result(method, instance_f1, cell=CELL, **other):
    scores = dict.fromkeys(short.MEASURED, instance_f1)
    return {"cell": cell, "method": method, "seed": 0, "constant": 0.2, **scores, **other}


def test_a_cell_travels_with_its_word_vectors(cells, monkeypatch):
    monkeypatch.setattr("setrnn.data.vectors.SOURCES", {"ppmi": None})
    prepared = Prepared(cells / CELL)
    prepared.check()
    assert [len(prepared.split(part)) for part in ("train", "valid")] == [60, 120]
    assert prepared.split("train").tokens.lengths.max() == 8  # "end" is the ninth word
    vectors = word_vectors(prepared, VectorSettings(dimensions=8, epochs=1))
    assert np.abs(vectors).max() > 0
    assert short.measure_constant(prepared.folder) == pytest.approx(2 / 3, abs=0.2)


def test_systems_are_trained_mixed_and_failures_are_results(cells):
    settings = [*SETTINGS, *(s for s in SMALL_OVERRIDES if not s.startswith(("vectors", "text")))]
    settings += ["training.epochs=1"]
    for method in ("br-support", "sigmoid"):
        done = short.run_one(cells, (CELL, method, 0), "cpu", settings)
        assert not done.get("error")
        assert isinstance(setrnn.load(short.model_folder(cells, CELL, method, 0)), setrnn.Tagger)
    mixed = short.run_one(cells, (CELL, short.MIXTURE, 0), "cpu", settings)
    assert mixed["instance_f1"] >= done["instance_f1"]
    assert mixed["held_out"]["f1"] >= 0
    failed = short.run_one(cells, (CELL, "set-rnn", 0), "cpu", ["model.max_labels=0"])
    assert "ConfigError" in failed["error"]


def test_the_table_says_who_is_behind_failed_or_learned_nothing(tmp_path, capsys):
    results = [
        result("br-support", 0.6),
        result("set-rnn", 0.59),
        result("set-rnn-exact", 0.5),
        result("sigmoid", 0.2),
        result("mixture", 0.61),
        {"cell": "arxiv-500-8", "method": "sigmoid", "seed": 0, "error": "TrainingError: no"},
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in results) + '{"cut sho')
    short.main(["--table", str(file)])
    rows = {row["cell"]: row for row in json.loads((tmp_path / "results.json").read_text())}
    verdicts = {"br-support": "", "set-rnn": "", "set-rnn-exact": "behind", "mixture": ""}
    assert rows[CELL]["verdicts"] == {**verdicts, "sigmoid": "learned nothing"}
    assert rows["arxiv-500-8"]["verdicts"] == {"sigmoid": "failed"}
    assert all(rows[CELL]["ahead"].values())
    table = (tmp_path / "results.md").read_text()
    assert "set-rnn: within 0.02 of br-support or ahead in 1 of 1 cells" in table
    assert table in capsys.readouterr().out
