"""The commands of docs/start.md, from a raw export to a served model, run as they are printed."""

import csv
import json
import re
import shlex
from itertools import islice
from pathlib import Path

import pytest
from doc_pages import run_here
from fastapi.testclient import TestClient

from setrnn.data import newsroom
from setrnn.serve.app import make_app
from setrnn.training.speed import Speed

PAGE = (Path(__file__).parents[2] / "docs" / "start.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- run by tests/docs/test_start_page.py -->\n((?:    .*\n)+)", PAGE)
COMMANDS = [shlex.split(line) for block in BLOCKS for line in block.splitlines()]
N_RAW, N_NEW, N_CHOSEN = 600, 40, 20


def write_csv(file, rows):
    """Write a raw export: semicolons, a byte order mark, several labels in a cell."""
    with file.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.writer(stream, delimiter=";", lineterminator="\r\n")
        writer.writerow(("nr", "headline", "body", "topics"))
        for number, example in enumerate(rows, 1):
            headline, _, body = example.text.partition("\n")
            writer.writerow((f"a{number}", headline, body, ", ".join(example.labels)))


@pytest.fixture
def asked(monkeypatch):
    """Serve for as long as the commands that follow ask; collect the answers."""
    answers = {}

    def serve(registry, settings, listener, keys, hosts, greeting, note):
        listener.close()
        registry.load()
        (curl,) = [command for command in COMMANDS if command[0] == "curl"]
        url = next(each for each in curl if each.startswith("localhost"))
        header = curl[curl.index("-H") + 1].split(": ")
        with TestClient(make_app(registry, settings, keys, hosts), "http://localhost") as client:
            path = url.removeprefix("localhost:8000")
            answer = client.post(path, content=curl[curl.index("-d") + 1], headers=[header])
            answers.update({"/": client.get("/"), path: answer})
        return 0

    monkeypatch.setattr("setrnn.serve.server.serve", serve)
    return answers


def test_a_raw_csv_becomes_a_served_model(tmp_path, monkeypatch, capsys, asked):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    # So slow a machine trains no networks: tests/tagging/learn/test_automatic.py does.
    slow = Speed(training=1e6, predicting=1.0)
    monkeypatch.setattr("setrnn.tagging.learn.member_training.measure_speed", lambda *_: slow)
    examples = newsroom.examples("train")
    write_csv(tmp_path / "articles.csv", islice(examples, N_RAW))
    reviewed = list(islice(examples, N_NEW))
    write_csv(tmp_path / "new.csv", reviewed)
    printed = {}
    for command in COMMANDS:
        if command[0] == "curl":
            continue
        if "reviewed.jsonl" in command:  # what the page exports, with a label that is new
            rows = [
                {"id": each.id, "text": each.text, "labels": [*each.labels, "seen by a person"]}
                for each in reviewed
            ]
            (tmp_path / "reviewed.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
        found = run_here(command, monkeypatch, capsys)
        printed[shlex.join(command[1:])] = found.out + found.err
    assert "600" in printed[shlex.join(COMMANDS[0][1:])]
    assert re.search(
        r"Accept \d+ of \d+ labels", next(each for name, each in printed.items() if "calib" in name)
    )
    with (tmp_path / "tagged.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=","))
    assert len(rows) == N_NEW
    assert {"nr", "labels", "probability", "accepted", "notes"} <= rows[0].keys()
    assert asked["/"].status_code == 200
    assert "sport" in asked["/v1/tag"].json()["predictions"][0]["labels"]
    with (tmp_path / "next.csv").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == N_CHOSEN
    names = json.loads((tmp_path / "model-2" / "labels.json").read_text())["labels"]
    assert "seen by a person" in names
