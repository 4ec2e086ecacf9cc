"""Several processes that need the same prepared data: one makes it, the others wait for it."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from setrnn.config import TextSettings, VectorSettings
from setrnn.data import cache
from setrnn.data.cache import Source, open_prepared
from setrnn.data.disk import is_temporary, locked
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.data.read import ReadOptions, write_examples
from setrnn.data.vectors import word_vectors
from setrnn.errors import DataError
from setrnn.progress import log

SETTINGS, VECTORS = TextSettings(min_count=1), VectorSettings(dimensions=8, epochs=1)
N_AT_ONCE = 4


@pytest.fixture
def data(small_examples, tmp_path):
    write_examples(small_examples["train"][:50], tmp_path / "data.jsonl")
    return Source(str(tmp_path / "data.jsonl"))


def leftovers(folder):
    found = [path.name for path in folder.rglob(".*")]
    assert all(is_temporary(name) for name in found), found
    return found


def at_once(action):
    barrier = threading.Barrier(N_AT_ONCE)

    def act(number):
        barrier.wait()
        return action(number)

    with ThreadPoolExecutor(N_AT_ONCE) as threads:
        return list(threads.map(act, range(N_AT_ONCE)))


def test_data_that_many_need_at_once_is_prepared_once(data, tmp_path, monkeypatch, notes):
    made, events = [], []
    prepare = cache.prepare

    def prepare_slowly(*arguments, **options):
        made.append(1)
        for _ in range(100):  # until the others have found the lock
            if len(notes.texts) == N_AT_ONCE - 1:
                break
            time.sleep(0.1)
        return prepare(*arguments, **options)

    monkeypatch.setattr(cache, "prepare", prepare_slowly)
    found = at_once(lambda _: open_prepared(data, SETTINGS, tmp_path / "cache", events.append))
    assert len(made) == 1
    assert len({each.folder for each in found}) == 1
    assert {len(each.split("train")) for each in found} == {50}
    assert len(notes.texts) == N_AT_ONCE - 1
    assert all("is being written by" in text and "Waiting" in text for text in notes.texts)
    assert [event.n_done for event in events] == [50, 50, 50]
    assert leftovers(tmp_path / "cache") == []


def test_vectors_that_many_need_at_once_are_learned_once(data, tmp_path):
    events = []
    prepared = open_prepared(data, SETTINGS, tmp_path / "cache")
    found = at_once(lambda _: word_vectors(Prepared(prepared.folder), VECTORS, events.append))
    assert len({vectors.tobytes() for vectors in found}) == 1
    assert [event.detail for event in events].count("counting words") == 1
    assert leftovers(prepared.folder) == []


def test_a_complete_folder_is_never_replaced(data, tmp_path, monkeypatch):
    first = open_prepared(data, SETTINGS, tmp_path / "cache")
    number = first.folder.stat().st_ino
    is_prepared = cache.is_prepared
    # As if another process finished between the question and the lock; first, it asks about DATA.
    answers = iter([False, False])
    monkeypatch.setattr(cache, "is_prepared", lambda place: next(answers, is_prepared(place)))
    again = open_prepared(data, SETTINGS, tmp_path / "cache")
    assert again.folder.stat().st_ino == number


HANGS = """
import sys, time
from pathlib import Path
from setrnn.config import TextSettings, VectorSettings
from setrnn.data import prepared, vectors
from setrnn.data.cache import Source, open_prepared

def hang(*_, **__):
    print("ready", flush=True)
    time.sleep(600)

file, folder, place = sys.argv[1:]
if place == "prepare":
    prepared.SplitWriter.append = hang
else:
    vectors.np.savez = hang
made = open_prepared(Source(file), TextSettings(min_count=1), Path(folder))
vectors.word_vectors(made, VectorSettings(dimensions=8, epochs=1))
"""


@pytest.mark.parametrize("place", ["prepare", "vectors"])
def test_after_a_kill_the_next_one_makes_it_and_sweeps(data, tmp_path, place, notes):
    folder = tmp_path / "cache"
    arguments = [sys.executable, "-c", HANGS, data.data, str(folder), place]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"ready\n"
        assert len(leftovers_of_work := [*folder.rglob(".*setrnn-*")]) >= 1, leftovers_of_work

        class Killer(logging.Handler):
            def emit(self, record):
                if "Waiting" in record.getMessage():
                    os.kill(other.pid, signal.SIGKILL)
                    other.wait()

        log.addHandler(killer := Killer())
        try:
            prepared = open_prepared(data, SETTINGS, folder)
            word_vectors(prepared, VECTORS)
        finally:
            log.removeHandler(killer)
    assert any(f"process {other.pid}. Waiting" in text for text in notes.texts)
    assert leftovers(folder) == []


DIES = """
import os, signal, sys
from pathlib import Path
from setrnn.data.disk import locked, temporary_folder
target = Path(sys.argv[1])
with locked(target), temporary_folder(target, is_private=True):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_behind_the_last_write_the_next_one_sweeps(data, tmp_path):
    folder = tmp_path / "cache"
    prepared = open_prepared(data, SETTINGS, folder)
    subprocess.run([sys.executable, "-c", DIES, str(prepared.folder)], check=False)
    assert len(list(folder.iterdir())) == 3  # the lock, and copies of texts
    open_prepared(data, SETTINGS, folder)
    assert list(folder.iterdir()) == [prepared.folder]


def test_an_older_folder_in_the_cache_is_made_again(data, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "FORMAT", 1)
    monkeypatch.setattr("setrnn.data.prepared.FORMAT", 1)
    older = open_prepared(data, SETTINGS, tmp_path / "cache")
    monkeypatch.undo()
    newer = open_prepared(data, SETTINGS, tmp_path / "cache")
    assert newer.folder != older.folder
    with pytest.raises(DataError, match="another version"):
        open_prepared(Source(str(older.folder)), SETTINGS)


def write_texts(file, *texts, labels=("secret",)):
    write_examples([Example(str(n), text, labels) for n, text in enumerate(texts)], file)
    return file


def test_texts_without_labels_become_a_part_whose_words_are_known(tmp_path):
    train = write_texts(tmp_path / "train.jsonl", "rates rise", "rates fall", labels=("economy",))
    files = tuple(
        write_texts(tmp_path / f"{name}.jsonl", *([f"{name} storms"] * 3)) for name in ("a", "b")
    )
    options = ReadOptions(label_map={"economy": "markets"})
    source = Source(str(train), options, unlabelled=files)
    prepared = open_prepared(source, TextSettings(), tmp_path / "made")
    assert prepared.description["n_documents"] == {"train": 2, "unlabelled": 6}
    assert prepared.labels.names == ("markets",)
    assert not prepared.unseen_labels
    assert "storms" in prepared.encoder.tokens
    assert len(prepared.split("unlabelled").labels.values) == 0
    first = open_prepared(replace(source, unlabelled=files[:1]), TextSettings(), tmp_path / "made")
    assert first.folder != prepared.folder
    with pytest.raises(DataError, match="--unlabelled"):
        open_prepared(Source(str(prepared.folder), unlabelled=files), TextSettings())


def test_the_cache_lists_what_was_used_last_first_and_clears_it_alone(
    data, tmp_path, monkeypatch, notes
):
    folder = tmp_path / "cache"
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(folder))
    assert cache.list_cache() == [] == cache.clear_cache()
    first = open_prepared(data, SETTINGS)
    word_vectors(first, VECTORS)
    second = open_prepared(data, replace(SETTINGS, min_count=2))
    (folder / "mine").mkdir()
    os.utime(first.folder, (1, 1))
    os.utime(second.folder, (2, 2))
    assert [each.folder for each in cache.list_cache()] == [second.folder, first.folder]
    open_prepared(data, SETTINGS)
    found, other = cache.list_cache()
    assert (found.folder, found.n_documents, found.n_vectors) == (first.folder, 50, 1)
    assert found.n_bytes == sum(
        file.stat().st_size for file in first.folder.rglob("*") if file.is_file()
    )
    assert (other.folder, other.n_vectors) == (second.folder, 0)
    (second.folder / "prepared.json").write_text("[")
    assert cache.list_cache()[1].n_documents is None
    with locked(first.folder):
        assert [each.folder for each in cache.clear_cache()] == [second.folder]
    assert notes.texts[-1].endswith("It is kept.")
    assert [each.folder for each in cache.clear_cache()] == [first.folder]
    assert [each.name for each in folder.iterdir()] == ["mine"]
