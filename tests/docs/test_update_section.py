"""The commands of "Update" in docs/training.md, run as they are printed."""

import json
import re
import shlex
from pathlib import Path

from doc_pages import run_here

from setrnn.data.read import write_examples

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
MARK = r"<!-- run by tests/docs/test_update_section.py -->\n((?:    setrnn .*\n)+)"


def test_a_reviewed_export_updates_a_model(small_examples, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    documents = [each for part in small_examples.values() for each in part]
    write_examples(documents, tmp_path / "news.jsonl")
    rows = [
        {"id": each.id, "text": each.text, "labels": [*each.labels, "checked"], "reviewed": True}
        for each in documents[:30]
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "reviewed.jsonl").write_text(lines, encoding="utf-8")
    commands = [shlex.split(line) for line in re.search(MARK, PAGE)[1].splitlines()]
    printed = {command[1]: run_here(command, monkeypatch, capsys) for command in commands}
    assert list(printed) == ["train", "calibrate", "update", "show"]
    for word in ("before", "after", "old", "new", "instance-F1", "label-F1", "micro-F1"):
        assert word in printed["update"].out
    assert "30 old documents are replaced" in printed["update"].err
    assert "target accuracy 0.8" in printed["update"].err
    card = " ".join(printed["show"].out.split())
    assert "updated from: `model`" in card
    assert "`checked`" in card
