"""Preparing files side by side: the same bytes, whoever does it and whatever happens."""

import gzip
import json
import os

import pytest

import setrnn
from setrnn.data.cache import Source
from setrnn.errors import ConfigError, DataError, SetRNNError
from setrnn.progress import Note
from setrnn.scale import prepare_files as module
from setrnn.scale.processes import Processes
from setrnn.scale.workers import Outcome
from workers_here import WorkersHere

SETTINGS = ["text.vocabulary_documents=20", "text.min_count=1"]


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)


def rows_of(first, n, label="sport"):
    return [
        {
            "id": str(number),
            "text": f"Word{number * 7} and word{number % 5}, {number} goals.",
            "labels": [label, f"label{number % 3}"],
            "features": [f"desk{number % 2}"],
        }
        for number in range(first, first + n)
    ]


@pytest.fixture
def data(tmp_path):
    """Three files of train that share ids, two of valid with labels of their own, and bad rows."""
    write(tmp_path / "a" / "train.jsonl.gz", rows_of(0, 17))
    write(tmp_path / "b" / "train.jsonl.gz", [*rows_of(10, 30), "no JSON\n"])
    write(tmp_path / "c" / "train.jsonl.gz", rows_of(80, 9))
    write(tmp_path / "a" / "valid.jsonl.gz", rows_of(200, 4, "zebra"))
    write(tmp_path / "b" / "valid.jsonl.gz", rows_of(300, 5, "aardvark") + rows_of(310, 2, "zebra"))
    write(tmp_path / "more.jsonl.gz", [{"id": "x", "text": "A text without labels."}])
    return Source(
        tuple(str(tmp_path / name) for name in "abc"),
        on_bad_row="skip",
        unlabelled=(tmp_path / "more.jsonl.gz",),
    )


@pytest.fixture
def here(monkeypatch):
    """Do all work in this process."""
    monkeypatch.setattr(module, "hire", lambda work, *_: WorkersHere(work))


def prepared(data, out, **options):
    made = setrnn.prepare(data, out=out, settings=SETTINGS, **options)
    files = {
        file.relative_to(made.folder).as_posix(): file.read_bytes()
        for file in made.folder.rglob("*")
        if file.is_file()
    }
    return made, files


def test_any_number_of_processes_makes_the_same_bytes(data, tmp_path):
    alone, expected = prepared(data, tmp_path / "alone")
    assert alone.description["n_documents"] == {
        "train": 56,
        "valid": 11,
        "unlabelled": 1,
    }
    assert alone.unseen_labels == ["zebra", "aardvark"]
    assert alone.n_skipped_rows == 1
    assert alone.split("train").ids(0, 1) == ["a:0"]
    assert 3 < alone.encoder.n_tokens < 60  # some words are sampled, not all
    for workers in (1, 2, 3):
        made, found = prepared(data, tmp_path / str(workers), workers=workers)
        assert made.folder.name == alone.folder.name
        assert found == expected, workers


def test_training_reads_the_folder(data, tmp_path, here):
    made, _ = prepared(data, tmp_path / "p", workers=2)
    assert {*setrnn.train(made, "br").labels.names} == {"sport", "label0", "label1", "label2"}


def test_what_is_noted_does_not_depend_on_the_workers(data, tmp_path, here):
    noted = []
    for options in ({}, {"workers": 2}):
        events = []
        prepared(data, tmp_path / str(len(noted)), on_progress=events.append, **options)
        noted.append([each.text for each in events if isinstance(each, Note)])
    assert noted[0] == noted[1]
    assert any("'10' occurs in two files" in text for text in noted[0])


def test_more_workers_than_files_are_said(data, tmp_path, here):
    events = []
    prepared(data, tmp_path / "p", workers=7, on_progress=events.append)
    assert any("6 workers" in each.text for each in events if isinstance(each, Note))


def test_all_documents_are_reported(data, tmp_path, here):
    last = {}

    def keep(event):
        if not isinstance(event, Note):
            last[event.activity] = event.n_done

    prepared(data, tmp_path / "p", workers=2, on_progress=keep)
    assert last == {"vocabulary": 68, "encoding": 68}


def test_workers_that_are_killed_are_replaced(data, tmp_path, monkeypatch):
    """One is killed in each pass, before it hears of its task."""
    _, expected = prepared(data, tmp_path / "alone")
    submitted, submit = [], Processes.submit

    def kill_and_submit(self, task):
        submitted.append(task)
        if len(submitted) in (2, 8):
            (child,) = self._children
            child.process.kill()
            child.process.join()
        submit(self, task)

    monkeypatch.setattr(Processes, "submit", kill_and_submit)
    assert prepared(data, tmp_path / "p", workers=1)[1] == expected
    assert len(submitted) == len(set(submitted)) + 2


def test_a_file_that_no_worker_survives_is_named(data, tmp_path, monkeypatch):
    class Deadly(WorkersHere):
        def wait(self, seconds):
            task, self.task = self.task, None
            return [Outcome(task, death="killed by SIGKILL.")]

    monkeypatch.setattr(module, "hire", lambda work, *_: Deadly(work))
    with pytest.raises(SetRNNError, match=r"jsonl.gz could not be prepared.*SIGKILL"):
        prepared(data, tmp_path / "p", workers=2)
    assert not list((tmp_path / "p").iterdir())


@pytest.mark.parametrize("options", [{}, {"workers": 2}])
def test_a_file_that_changes_between_the_passes_is_refused(
    data, tmp_path, here, monkeypatch, options
):
    file = tmp_path / "b" / "train.jsonl.gz"
    learn = module.PieceHands.encode

    def change(self, *arguments):
        os.utime(file, ns=(1, 1))
        return learn(self, *arguments)

    monkeypatch.setattr(module.PieceHands, "encode", change)
    with pytest.raises(DataError, match="has changed"):
        prepared(data, tmp_path / "p", **options)
    assert not list((tmp_path / "p").iterdir())


def test_an_interrupted_one_begins_again(data, tmp_path, monkeypatch, here):
    _, expected = prepared(data, tmp_path / "alone")
    for n_tasks in (1, 7):
        with monkeypatch.context() as stopped:
            stopped.setattr(module, "hire", lambda work, *_, n=n_tasks: WorkersHere(work, n))
            with pytest.raises(KeyboardInterrupt):
                prepared(data, tmp_path / "p", workers=2)
        assert not list((tmp_path / "p").iterdir())
    assert prepared(data, tmp_path / "p", workers=2)[1] == expected


def test_the_error_of_a_bad_row_is_that_of_one_process(data, tmp_path, here):
    strict = Source(data.data, unlabelled=data.unlabelled)
    for options in ({}, {"workers": 2}):
        with pytest.raises(DataError, match="line 31"):
            prepared(strict, tmp_path / "p", **options)


def test_files_without_documents_are_refused(tmp_path, here):
    for name in "ab":
        write(tmp_path / f"{name}.jsonl.gz", [])
    with pytest.raises(DataError, match="no documents"):
        prepared(str(tmp_path / "*.jsonl.gz"), tmp_path / "p", workers=2)


def test_a_machine_that_does_not_see_the_data_is_named(data, tmp_path):
    work = module.PrepareWork(Source("/nowhere/a.jsonl"), None, tmp_path, setrnn.__version__)
    with pytest.raises(ConfigError, match="does not see /nowhere"):
        work.start()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"workers": 0}, "1 worker"), ({"ray": "127.0.0.1:1"}, "No Ray cluster")],
)
def test_a_crew_that_cannot_be_had_is_said_first(data, tmp_path, options, words):
    if "ray" in options:
        pytest.importorskip("ray")
    with pytest.raises(ConfigError, match=words):
        prepared(data, tmp_path / "p", **options)
    assert not (tmp_path / "p").exists()
