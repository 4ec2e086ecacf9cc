"""Tagging files by several workers: each document once, and the same bytes whatever happens."""

import csv
import json
import multiprocessing
import os
import signal
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import setrnn
from setrnn.data.disk import locked
from setrnn.data.read import ReadOptions
from setrnn.errors import BusyError, ConfigError, DataError, SetRNNError
from setrnn.tagging import files as module

TEXTS = [f"The storm number {n} hit the coast, parliament debates the budget." for n in range(50)]


@pytest.fixture
def here(monkeypatch):
    """Do all work in this process; stop after some chunks."""

    def stop_after(n_chunks):
        class Pool:
            def __init__(self, n_workers, context, start, arguments):
                self.n_left = n_chunks
                module._WORK = arguments[0]
                module._TAGGER = arguments[0].load()

            def submit(self, work, *arguments):
                if self.n_left == 0:
                    raise KeyboardInterrupt
                self.n_left = None if self.n_left is None else self.n_left - 1
                future = Future()
                future.set_result(work(*arguments))
                return future

            def shutdown(self, **_):
                pass

        monkeypatch.setattr(module, "ProcessPoolExecutor", Pool)

    stop_after(None)
    return stop_after


@pytest.fixture(scope="module")
def model(taggers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "br"
    taggers["br"].save(folder)
    return str(folder)


@pytest.fixture
def news(tmp_path):
    file = tmp_path / "news.jsonl"
    rows = (json.dumps({"id": str(n), "text": text}) for n, text in enumerate(TEXTS))
    file.write_text("\n".join(rows), encoding="utf-8")
    return str(file)


def content(done):
    place = Path(done.place)
    return b"".join((place / each if place.is_dir() else place).read_bytes() for each in done.files)


def tag(model, data, out, **how):
    return setrnn.predict_files(model, data, out, **{"chunk_rows": 15} | how)


@pytest.mark.parametrize("out", ["tags/", "tags.jsonl"])
def test_the_output_is_the_predictions_in_order(model, news, tmp_path, here, out):
    done = tag(model, news, f"{tmp_path}/{out}", top=2)
    rows = [json.loads(line) for line in content(done).splitlines()]
    expected = setrnn.load(model).tag(TEXTS, top=2)
    assert rows == [{"id": str(n), **each.as_dict()} for n, each in enumerate(expected)]
    assert done.n_documents == 50
    if out == "tags/":
        manifest = json.loads((tmp_path / "tags/manifest.json").read_text())
        assert [each["n_rows"] for each in manifest["parts"]] == [15, 15, 15, 5]
    else:
        assert {each.name for each in tmp_path.iterdir()} == {"news.jsonl", "tags.jsonl"}


@pytest.mark.parametrize("n_chunks", [0, 1, 3])
def test_the_same_call_tags_what_is_missing(model, news, tmp_path, here, n_chunks):
    whole = content(tag(model, news, tmp_path / "whole"))
    here(n_chunks)
    with pytest.raises(KeyboardInterrupt):
        tag(model, news, tmp_path / "tags.jsonl")
    parts = tmp_path / "tags.jsonl.parts"
    assert len(list(parts.glob("part-*.jsonl"))) == n_chunks
    assert not (tmp_path / "tags.jsonl").exists()
    damaged = parts / "part-000000.jsonl"
    damaged.write_text("half of a")  # a part without its size and hash is tagged again
    here(4 - max(n_chunks - 1, 0))
    assert content(tag(model, news, tmp_path / "tags.jsonl")) == whole


def test_another_run_is_refused_in_a_begun_folder(model, taggers, news, tmp_path, here):
    out = tmp_path / "tags"
    tag(model, news, out)
    for other in ({"top": 3}, {"chunk_rows": 7}, {"rule": "f1"}):
        with pytest.raises(ConfigError, match=f"begun with {next(iter(other))}="):
            tag(model, news, out, **other)
    taggers["pcc"].save(tmp_path / "pcc")
    with pytest.raises(ConfigError, match="model_version"):
        tag(tmp_path / "pcc", news, out)
    text = Path(news).read_text(encoding="utf-8")
    Path(news).write_text(text.replace("number 40", "NUMBER 40"), encoding="utf-8")
    with pytest.raises(DataError, match="part-000002"):  # of the same size
        tag(model, news, out)
    Path(news).write_text(text + '\n{"text": "more"}', encoding="utf-8")
    with pytest.raises(ConfigError, match="inputs"):
        tag(model, news, out)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="other files"):
        tag(model, news, tmp_path / "other")


def test_a_run_that_was_killed_as_it_began_is_begun_again(model, news, tmp_path, here):
    (tmp_path / "tags").mkdir()
    (tmp_path / "tags/.run.json.setrnn-000000-99-01234567").write_text("{")
    assert tag(model, news, tmp_path / "tags").n_documents > 0


def test_bad_rows_stop_or_are_counted(model, tmp_path, here):
    file = tmp_path / "news.jsonl"
    file.write_text('{"text": "a"}\n{"txt": 1}\n\n{"text": "b"}\n', encoding="utf-8")
    with pytest.raises(DataError, match="line 2"):
        tag(model, str(file), tmp_path / "stop")
    done = tag(model, setrnn.Source(str(file), on_bad_row="skip"), tmp_path / "skip")
    assert (done.n_documents, done.bad_rows.n_skipped) == (2, 1)


@pytest.mark.parametrize("out", ["tags.csv", "tags.parquet"])
def test_tables_keep_their_columns(model, tmp_path, here, out):
    file = tmp_path / "news.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["title", "desk"], *([each, "x"] for each in TEXTS[:4])])
    source = setrnn.Source(str(file), ReadOptions(text_field="title"))
    tag(model, source, tmp_path / out, chunk_rows=3)
    if out == "tags.parquet":
        rows = pq.read_table(tmp_path / out).to_pylist()
    else:
        rows = list(csv.DictReader((tmp_path / out).read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 4
    assert (rows[-1]["title"], rows[-1]["id"]) == (TEXTS[3], "news-4")
    assert {"desk", "labels", "probability"} <= set(rows[0])


def test_two_runs_of_one_output_are_refused(model, news, tmp_path, here):
    with locked(tmp_path / "tags"), pytest.raises(BusyError):
        tag(model, news, tmp_path / "tags")


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"out": "tags.xml"}, "xml"),
        ({"chunk_rows": 0}, "chunk-rows"),
        ({"workers": 0}, "workers"),
        ({"ray": "auto", "gpus_per_worker": 1.5}, "whole number"),
        ({"ray": "auto", "device": "cuda"}, "--gpus-per-worker"),
        ({"gpus_per_worker": 0.5}, "--ray"),
        ({"ray": "local", "out": "tags.parquet"}, "folder"),
        ({"out": "news.jsonl"}, "input"),
        ({"rule": "best"}, "best"),
        ({"limits": setrnn.Limits(required=["no such label"])}, "no such label"),
    ],
)
def test_what_cannot_be_is_refused(model, news, tmp_path, how, word):
    out = tmp_path / how.pop("out", "tags")
    with pytest.raises(SetRNNError, match=word):
        tag(model, news, out, **how)
    assert out.name == "news.jsonl" or not out.exists()


@pytest.mark.slow
def test_a_killed_worker_ends_the_command_and_the_next_tags_the_rest(model, news, tmp_path):
    killed, texts = [], 8 * TEXTS
    others = {*multiprocessing.active_children()}
    rows = [json.dumps({"text": text}) for text in texts]
    Path(news).write_text("\n".join(rows), encoding="utf-8")

    def kill_one(event):
        if not killed and getattr(event, "n_done", 0) >= 4:
            killed.append(({*multiprocessing.active_children()} - others).pop().pid)
            os.kill(killed[0], signal.SIGKILL)

    tag_in_pairs = partial(tag, model, news, tmp_path / "tags", chunk_rows=2, workers=2)
    with pytest.raises(SetRNNError, match=r"A worker was killed.*Run the same command again"):
        tag_in_pairs(on_progress=kill_one)
    finished = {file: file.stat().st_mtime_ns for file in (tmp_path / "tags").glob("part-*.json")}
    assert finished  # a record is written after its part
    done = tag_in_pairs()
    assert finished.items() <= {each: each.stat().st_mtime_ns for each in finished}.items()
    expected = [list(each.labels) for each in setrnn.load(model).tag(texts)]
    assert [json.loads(line)["labels"] for line in content(done).splitlines()] == expected
