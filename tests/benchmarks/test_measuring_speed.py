"""What a comparison does after training can be measured for any model."""

import importlib.util
import json
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "measuring.py"
sys.path.insert(0, str(SCRIPT.parent))  # of the modules that it imports
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
measuring = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(measuring)


def test_the_time_and_the_reads_of_a_network_are_measured(taggers, small_prepared, tmp_path):
    taggers["set-rnn"].save(tmp_path / "set-rnn")
    options = ["--turns=1", "--documents=8", f"--json={tmp_path / 'times.json'}"]
    measuring.main([str(small_prepared.folder), str(tmp_path / "set-rnn"), *options])
    (row,) = json.loads((tmp_path / "times.json").read_text())
    assert row["now, CPU s"] > 0
    assert row["now, reads"] > 1
