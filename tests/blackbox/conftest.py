"""A folder with data, models and a comparison, in which each test runs commands."""

import shutil
from itertools import islice

import pytest

from json_lines import write_rows
from made_comparison import made_comparison
from raw_exports import write_exports
from setrnn.data import newsroom
from setrnn.data.disk import whole_folder
from setrnn.data.read import write_examples
from setrnn.tagging.learn.train import train

SIZES = {"train": 300, "valid": 120, "test": 40}
MODELS = ("br", "pcc", "set-rnn", "seq2seq-rnn", "set-rnn-exact", "mixture")  # not calibrated
TEXTS = ("The cup final was won in extra time", "Shares fell as rates rose", "")


@pytest.fixture(scope="session")
def base(make_once, taggers, tmp_path_factory):
    """The folder that every test gets a copy of."""

    def write(folder):
        with whole_folder(folder) as target:
            write_world(target, taggers, tmp_path_factory)

    return make_once("world-of-commands", write)


def write_world(place, taggers, tmp_path_factory):
    (place / "data").mkdir()
    for split, size in SIZES.items():
        write_examples(islice(newsroom.examples(split), size), place / f"data/{split}.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SETRNN_CACHE", str(tmp_path_factory.mktemp("cache")))
        train(place / "data", "br", out=place / "model")  # a calibrated one
    for name in MODELS:
        taggers[name].save(place / name)
    rows = [
        {"text": text, "right": right, "wrong": wrong}
        for text, right, wrong in zip(
            TEXTS, (["football"], [], []), (["markets"], ["football"], []), strict=True
        )
    ]
    write_rows(place / "texts.jsonl", rows)
    write_rows(place / "bad.jsonl", [rows[0], {"text": 3}, rows[1]])
    write_rows(place / "empty.jsonl", [])
    write_rows(place / "unlabelled.jsonl", [{"text": "a", "labels": []}] * 5)
    write_rows(place / "few.jsonl", [{"text": "a cup", "labels": ["football"]}] * 20)
    (place / "cycle.csv").write_text("a,b\nb,a\n")
    (place / "strange.csv").write_text("x,y\n")
    (place / "no-model").mkdir()
    (place / "no-model" / "diary.txt").write_text("mine")
    write_exports(place / "exports", 20)
    comparison, records = made_comparison(("br", "set-rnn"), n_seeds=1, n_documents=30)
    comparison.save(place / "compared")
    for record in records:
        record.save(place / "compared")


@pytest.fixture
def world(base, tmp_path, monkeypatch):
    """A copy of the folder, as the current one."""
    place = shutil.copytree(base, tmp_path / "world")
    monkeypatch.chdir(place)
    monkeypatch.setattr("setrnn.report.build.draw_figures", lambda study: [])
    return place


@pytest.fixture
def run(setrnn, world):
    """Run a command line, which must end well; return what it printed."""

    def finish(line, code=0):
        ended = setrnn(*line.split())
        assert ended.code == code, ended.err
        assert "Traceback" not in ended.err
        return ended

    return finish
