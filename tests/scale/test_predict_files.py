"""Tagging files into a folder: each document once, and the same bytes whatever happens."""

import csv
import json
import multiprocessing
import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import setrnn
from setrnn.data.formats import ReadOptions
from setrnn.errors import BusyError, ConfigError, DataError, SetRNNError
from setrnn.scale import predict_files as module
from workers_here import WorkersHere

TEXTS = [f"The storm number {n} hit the coast, parliament debates the budget." for n in range(50)]


@pytest.fixture
def here(monkeypatch):
    """Do all work in this process."""

    def stop_after(n_tasks):
        monkeypatch.setattr(module, "hire", lambda work, *_: WorkersHere(work, n_tasks))

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
    return [(Path(done.place) / each).read_bytes() for each in done.files]


def tag(model, data, out, **how):
    return setrnn.predict_files(model, data, out, **{"shard_rows": 15} | how)


def test_the_shards_are_the_predictions_in_order(model, news, tmp_path, here):
    done = tag(model, news, tmp_path / "tags/", top=2)
    rows = [json.loads(line) for part in content(done) for line in part.splitlines()]
    expected = setrnn.load(model).tag(TEXTS, top=2)
    assert rows == [{"id": str(n), **each.as_dict()} for n, each in enumerate(expected)]
    assert (len(done.files), done.n_documents, done.n_bad) == (4, 50, 0)
    manifest = json.loads((tmp_path / "tags/manifest.json").read_text())
    assert [each["n_rows"] for each in manifest["shards"]] == [15, 15, 15, 5]


@pytest.mark.parametrize("n_tasks", [0, 1, 3])
def test_the_same_call_goes_on_with_what_is_missing(model, news, tmp_path, here, n_tasks):
    whole = content(tag(model, news, tmp_path / "whole"))
    here(n_tasks)
    out = tmp_path / "tags"
    with pytest.raises(KeyboardInterrupt):
        tag(model, news, out)
    assert len(list(out.glob("records/*"))) == n_tasks
    (out / "shard-000001-dead.jsonl").write_text("half of a")  # of a worker that was killed
    here(None)
    done = tag(model, news, out)
    assert content(done) == whole
    assert {each.name for each in out.glob("shard-*")} == set(done.files)


def test_another_plan_is_refused_with_the_difference(model, news, tmp_path, here):
    out = tmp_path / "tags"
    tag(model, news, out)
    for other, word in (
        ({"top": 3}, "top"),
        ({"shard_rows": 7}, "shard_rows"),
        ({"rule": "f1"}, "rule"),
    ):
        with pytest.raises(DataError, match=word):
            tag(model, news, out, **other)
    with Path(news).open("a", encoding="utf-8") as file:
        file.write('\n{"text": "more"}')
    with pytest.raises(DataError, match=r"news.jsonl has changed"):
        tag(model, news, out)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="other files"):
        tag(model, news, tmp_path / "other")


def test_an_input_that_changes_while_it_is_read_stops(model, news, tmp_path, here):
    here(1)
    with pytest.raises(KeyboardInterrupt):
        tag(model, news, tmp_path / "tags")
    before = Path(news).stat()
    text = Path(news).read_text(encoding="utf-8").replace("number 40", "NUMBER 40")
    Path(news).write_text(text, encoding="utf-8")
    os.utime(news, ns=(before.st_atime_ns, before.st_mtime_ns))
    here(None)
    with pytest.raises(DataError, match="changed"):
        tag(model, news, tmp_path / "tags")


def test_bad_rows_are_listed(model, tmp_path, here):
    file = tmp_path / "news.jsonl"
    file.write_text('{"text": "a"}\n{"txt": 1}\n\n{"text": "b"}\n', encoding="utf-8")
    with pytest.raises(DataError, match="line 2"):
        tag(model, str(file), tmp_path / "stop")
    source = setrnn.Source(str(file), on_bad_row="skip")
    done = tag(model, source, tmp_path / "skip")
    assert (done.n_documents, done.n_bad) == (2, 1)
    (bad,) = (tmp_path / "skip/bad.jsonl").read_text().splitlines()
    assert "line 2" in json.loads(bad)["place"]


def test_tables_keep_their_columns(model, tmp_path, here):
    file = tmp_path / "news.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["title", "desk"], *([each, "x"] for each in TEXTS[:4])])
    source = setrnn.Source(str(file), ReadOptions(text_field="title"))
    done = tag(model, source, tmp_path / "csv", format_out="csv", shard_rows=3)
    rows = list(csv.DictReader(content(done)[1].decode().splitlines()))
    assert rows[0]["title"] == TEXTS[3]
    assert rows[0]["id"] == "news-4"
    assert {"desk", "labels", "probability"} <= set(rows[0])
    done = tag(model, source, tmp_path / "parquet", format_out="parquet", shard_rows=3)
    table = pq.read_table(tmp_path / "parquet" / done.files[0])
    assert table.column("desk").to_pylist() == ["x"] * 3


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_ids_and_features_may_name_the_file(model, tmp_path, here, suffix):
    for name in ("a", "b"):
        rows = {"jsonl": '{"text": "storm"}\n', "csv": "text\nstorm\n"}[suffix]
        (tmp_path / f"{name}.{suffix}").write_text(rows, encoding="utf-8")
    options = ReadOptions(id_prefix="file", source_feature=True)
    done = tag(model, setrnn.Source(f"{tmp_path}/*.{suffix}", options), tmp_path / "tags")
    assert [json.loads(each)["id"] for each in content(done)] == ["a:a-1", "b:b-1"]


def test_addresses_are_read_and_written(model, news, tmp_path, here):
    whole = content(tag(model, news, tmp_path / "tags"))
    done = tag(model, f"file://{tmp_path}/*.jsonl", f"file://{tmp_path}/far")
    assert [(tmp_path / "far" / each).read_bytes() for each in done.files] == whole


def test_two_drivers_of_one_folder_are_refused(model, news, tmp_path, here):
    from setrnn.data.folders import locked

    with locked(tmp_path / "tags"), pytest.raises(BusyError):
        tag(model, news, tmp_path / "tags")


def test_what_cannot_be_is_said(model, news, tmp_path, here):
    for how, word in (
        ({"format_out": "xml"}, "xml"),
        ({"shard_rows": 0}, "shard-rows"),
        ({"crew": setrnn.Crew(gpus_per_worker=0.5)}, "--ray"),
        ({"crew": setrnn.Crew(ray="auto", gpus_per_worker=1.5)}, "whole number"),
        ({"crew": setrnn.Crew(ray="auto"), "device": "cuda"}, "--gpus-per-worker"),
        ({"rule": "best"}, "best"),
        ({"limits": setrnn.Limits(required=["no such label"])}, "no such label"),
    ):
        with pytest.raises(SetRNNError, match=word):
            tag(model, news, tmp_path / "tags", **how)
    with pytest.raises(ConfigError, match="worker"):
        setrnn.Crew(workers=0)
    assert not (tmp_path / "tags").exists()


def test_a_machine_that_does_not_see_all_is_named(model, news, tmp_path, here):
    """The paths exist for the driver, and not for a worker on another machine."""
    done = tag(model, news, tmp_path / "tags")
    (tmp_path / "tags/records/000000.json").unlink()
    seen = module.hire

    def hire_elsewhere(lost):
        def hire(work, *_):
            Path(lost).rename(tmp_path / "elsewhere")
            return seen(work)

        return hire

    for lost in (model, f"{done.place}/plan.json", news):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "hire", hire_elsewhere(lost))
            with pytest.raises(ConfigError, match=f"does not see {lost}"):
                tag(model, news, done.place)
        assert f"does not see {lost}" in (tmp_path / "tags/log.txt").read_text().splitlines()[-1]
        (tmp_path / "elsewhere").rename(lost)


def test_a_shard_without_a_record_is_told(model, news, tmp_path, here, monkeypatch):
    """Its worker has written it where the driver does not see it."""
    write = module.Driver.run

    def lose_one(driver):
        write(driver)
        (tmp_path / "tags/records/000002.json").unlink()

    monkeypatch.setattr(module.Driver, "run", lose_one)
    with pytest.raises(DataError, match="000002"):
        tag(model, news, tmp_path / "tags")


@pytest.mark.slow
def test_processes_survive_the_death_of_some(model, news, tmp_path, here, monkeypatch):
    whole = content(tag(model, news, tmp_path / "whole", shard_rows=2))
    monkeypatch.undo()
    killed = []

    def kill_one(event):
        if killed or getattr(event, "n_done", 0) < 4 or event.activity != "tagging":
            return
        killed.append(multiprocessing.active_children()[0].pid)
        os.kill(killed[0], signal.SIGKILL)

    done = tag(
        model,
        news,
        tmp_path / "tags",
        shard_rows=2,
        crew=setrnn.Crew(workers=2),
        on_progress=kill_one,
    )
    assert killed
    assert content(done) == whole
