"""The figure of attended words is made from records, and only free data are given away."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

from made_comparison import made_comparison

RESULTS = Path(__file__).parents[2] / "docs" / "results"
SPECIFICATION = importlib.util.spec_from_file_location("attention", RESULTS / "attention.py")
attention = sys.modules["attention"] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(attention)


def test_words_and_labels_are_shown_and_other_words_are_not_given_away(tmp_path, monkeypatch):
    comparison, records = made_comparison(("seq2seq-rnn", "set-rnn"), 1, 60)
    right = records[1].cases[0]
    labels = [*right["truth"], None]
    steps = [{"label": each, "probability": 0.9, "attended": [["cup", 0.6]]} for each in labels]
    none = [{"label": None, "probability": 0.9, "attended": [["final", 0.5]]}]
    records = [
        replace(record, cases=[{**right, "steps": each}])
        for record, each in zip(records, (none, steps), strict=True)
    ]
    comparison.save(tmp_path)
    for record in records:
        record.save(tmp_path)
    monkeypatch.setattr(attention, "HERE", tmp_path)
    attention.main([str(tmp_path)])
    assert not list(tmp_path.glob("*.svg"))
    attention.main([str(tmp_path), "--out", str(tmp_path)])
    text = (tmp_path / "attention-made-up.svg").read_text(encoding="utf-8")
    assert all(each in text for each in ("cup .60", "final .50", *right["truth"]))


def test_only_free_data_are_stored():
    stored = {file.stem.removeprefix("attention-") for file in RESULTS.glob("attention-*.svg")}
    assert stored == set(attention.FREE)
