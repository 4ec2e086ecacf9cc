"""The commands of docs/data.md, from raw exports to predictions, run as they are printed."""

import csv
import json
import re
import shlex
import sys
from itertools import islice
from pathlib import Path

import pytest
from doc_pages import run_here

from raw_exports import FILES, write_exports
from setrnn.cli import main
from setrnn.data import newsroom

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
BLOCK = re.search(r"<!-- run by tests/docs/test_data_page.py -->\n((?:    setrnn .*\n)+)", PAGE)
CHOOSING = re.search(
    r"<!-- run by tests/docs/test_data_page.py: what to tag next -->\n    (setrnn .*)\n", PAGE
)
N_ROWS = 60


def test_raw_exports_become_predictions(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write_exports(tmp_path / "exports", N_ROWS)
    commands = [shlex.split(line) for line in BLOCK[1].splitlines()]
    assert [command[1] for command in commands[1:]] == [
        *("data", "train", "evaluate", "predict", "predict")
    ]
    for command in commands:
        # The shell would expand a glob that is not in quotes.
        printed = run_here(command, monkeypatch, capsys)
        if command[2] == "info":
            assert "Likely twins" in printed.out
            assert "'beta:s1'" in printed.err
    assert json.loads(printed.out)["id"] == "text-1"
    with (tmp_path / "predicted.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == N_ROWS * len(FILES)
    assert list(rows[0])[:6] == [
        *("show_id", "title", "description", "listed_in", "labels", "probability")
    ]
    assert {row["show_id"] for row in rows} >= {"s1", "beta:s1", "gamma:s1"}
    assert rows[1]["title"] == "'=SUM(2) café"
    # The map has merged the two spellings.
    labels = {label for row in rows for label in row["labels"].split(";")}
    assert not {"Sport", "Sports"} <= labels
    assert not {"Weather", "Weathers"} <= labels


def test_documents_to_tag_next_are_written_with_proposals(taggers, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    taggers["br"].save("model")
    examples = list(islice(newsroom.examples("test"), 250))
    with Path("untagged.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("id", "text"), *((each.id, each.text) for each in examples)])
    monkeypatch.setattr(sys, "argv", shlex.split(CHOOSING[1]))
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code, capsys.readouterr().err
    with Path("next.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 200
    new = ["predicted_labels", "probability", "expected_f1", "reason"]
    assert list(rows[0]) == ["id", "text", *new]
    assert rows[0]["reason"].startswith("undecided: ")
