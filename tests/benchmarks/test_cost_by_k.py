"""The cost of a step is measured by K, as a ratio to seq2seq-rnn."""

import importlib.util
import json
import sys
from pathlib import Path

from small_taggers import SMALL_OVERRIDES

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cost_by_k.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
cost_by_k = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(cost_by_k)


def test_a_system_is_measured_with_every_k(small_prepared, tmp_path, capsys):
    file = tmp_path / "cost.json"
    settings = [f"--set={each}" for each in SMALL_OVERRIDES]
    options = ["--device=cpu", "--k=1,3", "--steps=1", "--rounds=1", "--methods=set-rnn"]
    cost_by_k.main([str(small_prepared.folder), *options, *settings, f"--json={file}"])
    values = json.loads(file.read_text())
    turns = {(row["method"], row["k"]) for row in values["rows"]}
    assert turns == {("seq2seq-rnn", 1), ("set-rnn", 1), ("set-rnn", 3)}
    assert all(row["ratio"] > 0 for row in values["rows"])
    assert values["orders_per_document"]["1"] == 1
    table = capsys.readouterr().out
    assert "| `set-rnn` |" in table
    assert "K = 3" in table
