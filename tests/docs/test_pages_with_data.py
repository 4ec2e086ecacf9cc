"""The commands and the Python of pages that need data of their own, run as they are printed."""

import csv
import json
import os
import re
import shutil
import signal
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from doc_pages import ROOT, list_blocks, posted
from fastapi.testclient import TestClient

import setrnn
from fake_runs import install_fake_report, install_fake_runs
from json_lines import read_rows, write_rows
from raw_exports import FILES, write_exports
from setrnn.cli import main
from setrnn.comparison.run import run as run_system
from setrnn.data import newsroom
from setrnn.data.read import read_hierarchy, write_examples
from setrnn.data.read.label_files import EMBEDDED_FILE
from setrnn.serve.server import make_app
from setrnn.tagging.learn.planning import Speed
from setrnn.training.loop import Trainer

SMALL = {
    "vectors": {"source": "none", "dimensions": 8},
    "model": {"encoder_units": 8, "decoder_units": 8},
    "search": {"beam_width": 2},
    "training": {"epochs": 12, "patience": 0, "batch_size": 32},
}
TREE = read_hierarchy("newsroom")
N_RAW, N_NEW, N_CHOSEN = 600, 40, 20


def blocks_of(page, story=None):
    """Return the blocks that a comment gives to this file, of one story if it names one."""
    return [
        block
        for block in list_blocks(f"docs/{page}")
        if block.run_by == "tests/docs/test_pages_with_data.py" and block.story == story
    ]


def commands_of(page, story=None):
    return [words for block in blocks_of(page, story) for _, words in block.commands]


def run_python(page):
    """Run the Python of a page, and return its names."""
    (code,) = [block.text for block in blocks_of(page) if block.is_python]
    names = {}
    exec(code, names)
    return names


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run commands in a new folder, and return what each of them prints, by its words."""
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run_all(commands, code=0):
        printed = {}
        for words in commands:
            monkeypatch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as stop:
                main()
            found = capsys.readouterr()
            assert (stop.value.code or 0) == code, found.err
            printed[" ".join(words[1:])] = found.out + found.err
        assert printed
        return printed

    return run_all


def write_parts(folder, change=None, **sizes):
    """Write parts of the newsroom, after a change of each example."""
    for split, size in sizes.items():
        examples = islice(newsroom.examples(split), size)
        changed = map(change, examples) if change else examples
        write_examples(changed, Path(folder) / f"{split}.jsonl")


def write_csv(file, header, rows, **how):
    with Path(file).open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream, **how).writerows([header, *rows])


def read_table(file, delimiter=";"):
    with Path(file).open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def test_raw_exports_become_predictions(run):
    write_exports(Path("exports"), 60)
    run(commands_of("data.md"))
    rows = read_table("predicted.csv")
    assert len(rows) == 60 * len(FILES)
    assert [row["show_id"] for row in rows].count("s1") == len(FILES)
    assert rows[1]["title"] == "'=SUM(2) café"
    labels = {label for row in rows for label in row["labels"].split(";")}
    assert not {"Sport", "Sports"} <= labels  # the map has merged the two spellings


def test_documents_to_tag_next_are_written_with_proposals(taggers, run):
    taggers["br"].save("model")
    examples = islice(newsroom.examples("test"), 250)
    write_csv("untagged.csv", ("id", "text"), [(each.id, each.text) for each in examples])
    run(commands_of("update.md", "what to tag next"))
    rows = read_table("next.csv", ",")
    assert len(rows) == 200
    assert rows[0].keys() >= {"id", "text", "predicted_labels", "reason"}


def test_wrong_labels_come_first_and_the_corrected_file_trains_and_updates(taggers, run):
    taggers["br"].save("model")
    clean = {each.id: each for each in islice(newsroom.examples("train"), 400)}
    others = {
        name: (
            *one.labels[1:],
            next(e.labels[0] for e in clean.values() if not {*e.labels} & {*one.labels}),
        )
        for name, one in [*clean.items()][::20]
    }
    labels = {name: others.get(name, each.labels) for name, each in clean.items()}
    rows = [(name, each.text, ";".join(labels[name]) or "[]") for name, each in clean.items()]
    write_csv("news.csv", ("id", "text", "labels"), rows)
    run(commands_of("doubt.md", "wrong labels"))
    rows = read_table("doubts.csv", ",")
    assert len(rows) == len(clean)
    found = [row["id"] in others for row in rows]
    assert sum(found[:20]) >= 8  # of 20 wrong ones among 400; by chance, one
    assert sum(found[:60]) >= 14
    assert sum(bool(row["words"]) for row in rows[:20]) >= 10
    for row in rows:
        row["labels"] = ";".join(clean[row["id"]].labels) or "[]"
    write_csv("doubts.csv", [*rows[0]], [[*row.values()] for row in rows])
    run(commands_of("doubt.md", "train again"))
    first = run(commands_of("doubt.md", "update"))
    assert len(read_table("first.csv", ",")) == 50
    assert any("50" in said and "replace" in said for said in first.values())


def test_an_export_of_label_studio_becomes_a_model_and_its_proposals(run):
    examples = list(islice(newsroom.examples("train"), 200))
    tag = {"from_name": "topics", "to_name": "text", "type": "choices"}
    tasks = [
        {
            "id": number,
            "data": {"text": each.text},
            "annotations": [{"result": [{**tag, "value": {"choices": each.labels}}]}],
        }
        for number, each in enumerate(examples)
    ]
    Path("export.json").write_text(json.dumps([*tasks, {"id": 999, "data": {"text": "later"}}]))
    write_csv("new.csv", ("id", "text", "desk"), [("n1", examples[0].text, "north")])
    run(commands_of("label-studio.md", "Label Studio"))
    written = read_rows(Path("tagged.jsonl"))
    assert [set(each["labels"]) for each in written] == [set(each.labels) for each in examples]
    again = json.loads(Path("tasks.json").read_text("utf-8"))
    assert again[0]["data"]["text"] == examples[0].text
    (proposed,) = json.loads(Path("proposals.json").read_text("utf-8"))
    assert proposed["data"] == {"id": "n1", "text": examples[0].text, "desk": "north"}
    assert proposed["predictions"][0]["result"][0]["type"] == "choices"


def test_sets_are_closed_in_a_hierarchy_where_the_page_says_so(run, monkeypatch):
    def without_those_above(example):
        above = {each for label in example.labels for each in TREE.ancestors(label)}
        return replace(example, labels=tuple(each for each in example.labels if each not in above))

    sizes = {"train": 160, "valid": 40, "test": 40}
    write_parts("news", **sizes)
    write_parts("leaves", without_those_above, **sizes)
    Path("parents.csv").write_bytes(EMBEDDED_FILE.read_bytes())
    texts = [
        {"text": each["text"], "checked": ["copper"]} for each in read_rows(Path("news/test.jsonl"))
    ]
    write_rows(Path("texts.jsonl"), texts)
    install_fake_runs(monkeypatch, run_system)
    install_fake_report(monkeypatch)
    run(commands_of("hierarchies.md"))

    def sets_of(file):
        return [each["labels"] for each in read_rows(Path(file))]

    assert all(map(TREE.is_closed, sets_of("tagged.jsonl")))
    assert not all(map(TREE.is_closed, sets_of("loose.jsonl")))
    assert all({"copper", "economy"} <= set(each) for each in sets_of("completed.jsonl"))
    assert all(map(TREE.is_closed, sets_of("whole/train.jsonl")))
    names = run_python("hierarchies.md")
    assert names["tree"].close(["harbour-cup"]) == ("harbour-cup", "football", "sport")
    assert TREE.is_closed(names["labels"])
    assert {"harbour-cup", "football", "sport"} <= set(names["completed"])
    assert names["closing"].keeps_closed
    assert list(names["classifier"].classes_) == ["football", "sport", "weather"]


def test_incomplete_documents_are_read_trained_on_and_copied(run):
    number = iter(range(10_000))

    def hide(example):
        match next(number) % 3:
            case 1:
                return replace(example, labels=example.labels[::2], complete=False)
            case 2:
                return replace(example, labels=example.labels[1:], unknown=example.labels[:1])
        return example

    write_parts("news", hide, train=120, valid=30, test=30)
    rows = [(f"text {n}", "ab"[n % 2], "c" * (n % 3 == 0), "no" * (n % 5 == 0)) for n in range(60)]
    write_csv("rows.csv", ("text", "labels", "unknown", "complete"), rows)
    run(commands_of("incomplete.md"))
    for file in ("train.jsonl", "test.jsonl"):
        assert Path("copy", file).read_bytes() == Path("news", file).read_bytes()
    configs = [json.loads(Path(each, "config.json").read_text()) for each in ("model", "neutral")]
    assert [each["config"]["training"]["forgotten"] for each in configs] == [-1, 1]
    names = run_python("incomplete.md")
    assert names["evaluation"].scores.n_incomplete == 20
    first, second = read_rows(Path("said.jsonl"))[:2]
    assert (first["unknown"], second["complete"]) == (["inflation"], False)


def test_a_table_in_four_languages_becomes_models(run):
    shutil.copy(ROOT / "docs/languages/notices.csv", ".")
    printed = run(commands_of("texts.md"))
    told = "".join(text for words, text in printed.items() if words.startswith("predict"))
    lines = [line for line in told.splitlines() if line.startswith("{")]
    labels = [set(json.loads(line)["labels"]) for line in lines]
    assert labels == [{"traffic"}, {"health"}, {"weather", "traffic"}, {"weather", "traffic"}]
    assert setrnn.load("model").config.text.language == "none"


def test_models_are_shared_over_a_hub(taggers, run, hub):
    for name in ("model", "news", "mail"):
        taggers["br"].save(name)
    write_rows(Path("texts.jsonl"), [{"text": "The storm stopped the ski race."}])
    run(commands_of("sharing.md"))
    assert read_rows(Path("tagged.jsonl"))[0]["labels"]
    assert set(hub.repositories) == {"me/news", "me/drafts", "me/mail"}
    assert hub.repositories["me/drafts"].private
    assert "v1" in hub.repositories["me/news"].tags
    for name in ("copies/news", "fetched/news", "fetched/mail"):
        assert Path(name, "config.json").is_file()
    shutil.rmtree("fetched")
    names = run_python("sharing.md")
    assert names["address"] == f"{hub.address}/me/news"
    assert names["labels"]


def test_a_raw_csv_becomes_a_served_model(run, monkeypatch):
    """From docs/start.md; the service runs for as long as it takes to ask."""
    commands = commands_of("start.md")
    (curl,) = [words for words in commands if words[0] == "curl"]
    answers = []

    def serve(registry, settings, listener, keys, hosts, _greeting):
        listener.close()
        registry.load()
        with TestClient(make_app(registry, settings, keys, hosts), "http://localhost") as client:
            answers.extend([client.get("/"), client.request(**posted(curl))])
        return 0

    monkeypatch.setattr("setrnn.serve.server.serve", serve)
    # So slow a machine trains no networks: tests/tagging/learn/test_automatic.py does.
    slow = Speed(training=1e6, predicting=1.0)
    monkeypatch.setattr("setrnn.tagging.learn.automatic.measure_speed", lambda *_: slow)
    examples = newsroom.examples("train")
    for name, size in (("articles.csv", N_RAW), ("new.csv", N_NEW)):
        chosen = list(islice(examples, size))
        rows = [
            (f"a{number}", *each.text.split("\n", 1), ", ".join(each.labels) or "[]")
            for number, each in enumerate(chosen, 1)
        ]
        write_csv(name, ("nr", "headline", "body", "topics"), rows, delimiter=";")
    new = "seen by a person"  # a label of what the page exports
    reviewed = [{"text": each.text, "labels": [*each.labels, new]} for each in chosen]
    write_rows(Path("reviewed.jsonl"), reviewed)
    run([words for words in commands if words[0] == "setrnn"])
    rows = read_table("tagged.csv")
    assert len(rows) == N_NEW
    assert {"nr", "labels", "probability", "accepted", "notes"} <= rows[0].keys()
    page, tagged = answers
    assert page.status_code == 200
    assert "sport" in tagged.json()["predictions"][0]["labels"]
    assert len(read_table("next.csv")) == N_CHOSEN
    assert new in json.loads(Path("model-2/labels.json").read_text())["labels"]


def test_a_stopped_run_is_finished_and_continued(run, monkeypatch):
    Path("small.json").write_text(json.dumps(SMALL))
    write_parts("news", train=32, valid=8)
    commands = commands_of("training.md", "a stopped run")
    first = commands[0][: commands[0].index("--resume")]
    step, steps = Trainer._step, iter(range(1, 1000))

    def step_and_stop(*arguments):
        if next(steps) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", step_and_stop)
        (said,) = run([first], code=130).values()
    assert re.search("keep epoch", said)
    n_epochs = []
    for command in commands:
        run([command])
        notes = json.loads(Path("model/config.json").read_text())["notes"]
        n_epochs.append(len(notes["epochs"]))
    assert n_epochs == [4, 12]


def test_a_reviewed_export_updates_a_model(small_examples, run):
    documents = [each for part in small_examples.values() for each in part]
    write_examples(documents, Path("news.jsonl"))
    rows = [
        {"id": each.id, "text": each.text, "labels": [*each.labels, "checked"], "reviewed": True}
        for each in documents[:30]
    ]
    write_rows(Path("reviewed.jsonl"), rows)
    printed = run(commands_of("update.md", "update"))
    (update,) = [text for words, text in printed.items() if words.startswith("update")]
    assert "30 old documents are replaced" in update
    assert "`checked`" in printed["show model-2"]
