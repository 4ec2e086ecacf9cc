"""Learning curves start from one model, and every strategy adds new documents to it."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import setrnn
from setrnn.data.formats import write_examples

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "choosing.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
choosing = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(choosing)


def test_every_strategy_adds_new_documents(small_examples, tmp_path, monkeypatch):
    for name, value in {"N_FIRST": 40, "N_ADDED": 10, "N_ROUNDS": 1}.items():
        monkeypatch.setattr(choosing, name, value)
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    seen = []

    def train(tagged):
        seen.append({each.id for each in tagged})
        write_examples(tagged, tmp_path / "train.jsonl")
        return setrnn.train(tmp_path / "train.jsonl", "br", cut_valid=False)

    names = list(choosing.STRATEGIES)
    pool, measured = small_examples["train"][:100], small_examples["test"]
    curves = choosing.measure_curves(names, pool, measured, train, seed=0)
    assert [[row["documents"] for row in curves[name]] for name in names] == [[40, 50]] * len(names)
    assert len({curves[name][0]["instance_f1"] for name in names}) == 1
    assert all(seen[0] < each and len(each) == 50 for each in seen[1:])
    assert "newsroom | choose" in choosing.summarise(
        {"newsroom": {name: [curve] for name, curve in curves.items()}}
    )


@pytest.mark.parametrize(("last", "needed"), [(0.5, "400"), (0.9, "more than 500")])
def test_documents_needed_for_what_random_choice_ends_with(last, needed):
    curve = {"documents": np.array([300, 500]), "instance_f1": np.array([0.4, 0.6])}
    assert choosing.count_needed(curve, {"instance_f1": np.array([last])}) == needed
