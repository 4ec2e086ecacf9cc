"""The commands of the sections on Label Studio in docs/data.md and docs/serve.md."""

import csv
import json
import re
import shlex
from itertools import islice
from pathlib import Path

from doc_pages import run_here
from fastapi.testclient import TestClient

from setrnn.data import newsroom
from setrnn.serve.app import make_app
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.settings import ServeSettings

DOCS = Path(__file__).parents[2] / "docs"


def commands(page, part):
    mark = f"<!-- run by tests/docs/test_label_studio_sections.py: {part} -->\n"
    (block,) = re.findall(re.escape(mark) + r"((?:    .*\n)+)", (DOCS / page).read_text("utf-8"))
    return [shlex.split(line) for line in block.splitlines()]


def test_an_export_becomes_a_model_and_its_proposals(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    examples = list(islice(newsroom.examples("train"), 200))
    tasks = [
        {
            "id": number,
            "data": {"text": each.text},
            "annotations": [
                {
                    "result": [
                        {
                            "from_name": "topics",
                            "to_name": "text",
                            "type": "choices",
                            "value": {"choices": each.labels},
                        }
                    ]
                }
            ],
        }
        for number, each in enumerate(examples)
    ]
    Path("export.json").write_text(json.dumps([*tasks, {"id": 999, "data": {"text": "later"}}]))
    with Path("new.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("id", "text", "desk"), ("n1", examples[0].text, "north")])
    for command in commands("data.md", "data"):
        printed = run_here(command, monkeypatch, capsys)
        if command[2] == "info":
            assert "1 tasks have no annotation" in printed.err
    written = [json.loads(line) for line in Path("tagged.jsonl").read_text("utf-8").splitlines()]
    assert [set(each["labels"]) for each in written] == [set(each.labels) for each in examples]
    again = json.loads(Path("tasks.json").read_text("utf-8"))
    assert again[0]["data"]["text"] == examples[0].text
    (proposed,) = json.loads(Path("proposals.json").read_text("utf-8"))
    assert proposed["data"] == {"id": "n1", "text": examples[0].text, "desk": "north"}
    (prediction,) = proposed["predictions"]
    assert 0 < prediction["score"] <= 1
    assert prediction["model_version"].startswith("model-")
    assert prediction["result"][0]["type"] == "choices"


def test_the_requests_of_the_page_are_answered(taggers):
    registry = Registry.of(ServedModel("model", "one", taggers["br"]))
    app = make_app(registry, ServeSettings(label_studio=True))
    with TestClient(app, "http://localhost") as client:
        for curl in commands("serve.md", "serve"):
            path = curl[2].removeprefix("localhost:8000")
            if "-d" not in curl:
                answer = client.get(path)
            else:
                header = curl[curl.index("-H") + 1].split(": ")
                answer = client.post(path, content=curl[curl.index("-d") + 1], headers=[header])
            assert answer.status_code == 200, answer.text
    chosen = answer.json()["results"][0]["result"]
    assert {*chosen[0]["value"]["choices"]} <= {"sport", "weather"} if chosen else True
