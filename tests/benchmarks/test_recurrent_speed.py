"""The speed of every kind of network can be measured, also of one without sequences."""

import importlib.util
import json
import sys
from pathlib import Path

from small_taggers import SMALL_OVERRIDES

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "recurrent.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
recurrent = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(recurrent)


def test_a_network_without_sequences_is_measured_by_its_sets(
    small_prepared, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(recurrent, "PASSES", 1)
    settings = [f"--set={each}" for each in (*SMALL_OVERRIDES, "training.epochs=1")]
    options = ["--device=cpu", "--documents=4", f"--json={tmp_path / 'speed.json'}"]
    folder = str(small_prepared.folder)
    recurrent.main([folder, "--methods=sigmoid,set-rnn", *options, *settings])
    rows = json.loads((tmp_path / "speed.json").read_text())["rows"]
    assert rows["set-rnn"].keys() - rows["sigmoid"].keys() == {"sequences"}
    assert all(value > 0 for row in rows.values() for value in row.values())
    assert "sigmoid: training costs x1.00" in capsys.readouterr().out
