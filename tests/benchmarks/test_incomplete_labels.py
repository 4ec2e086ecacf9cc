"""Half of the labels are hidden, and every arm reads what it should."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "incomplete_labels.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
incomplete_labels = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(incomplete_labels)


def count(examples):
    return sum(len(each.labels) for each in examples)


@pytest.mark.parametrize("way", ["checked", "unchecked", "unasked"])
def test_half_of_the_labels_are_hidden(way, small_examples):
    whole = small_examples["train"]
    hidden = incomplete_labels.hide(whole, way, seed=0)
    assert all(set(a.labels) <= set(b.labels) for a, b in zip(hidden, whole, strict=True))
    lost = [(a, b) for a, b in zip(hidden, whole, strict=True) if a.is_incomplete]
    share = count(a for a, _ in lost) / count(b for _, b in lost)
    assert share == pytest.approx(0.5, abs=0.05)
    assert len(lost) / len(whole) == pytest.approx(0.75 if way == "checked" else 1, abs=0.08)
    assert hidden == incomplete_labels.hide(whole, way, seed=0)
    assert not any(e.is_incomplete for e in incomplete_labels.treat(hidden, "absent"))
    only = incomplete_labels.treat(hidden, "complete")
    assert all(each in whole for each in only)


def test_a_run_adds_a_record_and_the_table_shows_it(small_examples, tmp_path, capsys):
    from setrnn.data.formats import write_folder

    parts = small_examples | {"valid": small_examples["train"][200:]}  # enough to calibrate on
    write_folder(parts, tmp_path / "data")
    run = {"way": "checked", "arm": "estimated", "method": "br", "seed": 0}
    out = tmp_path / "results.jsonl"
    shared = {
        "data": str(tmp_path / "data"),
        "documents": 120,
        "measured": None,
        "vectors": None,
        "settings": [],
    }
    incomplete_labels.do_run(run, {**shared, "device": "cpu", "out": out})
    assert 0 < json.loads(out.read_text())["test"]["instance_f1"] < 1
    incomplete_labels.main(["table", str(out)])
    assert "| checked | estimated | `br` | 1 |" in capsys.readouterr().out
