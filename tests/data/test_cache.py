"""What a prepared folder holds, and several processes that need it: one makes it, others wait."""

import os
import string
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setrnn.config import TextSettings, VectorSettings
from setrnn.data import cache
from setrnn.data.cache import open_prepared, prepare
from setrnn.data.disk import is_temporary, locked
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.data.read import BadRows, ReadOptions, write_examples, write_folder
from setrnn.data.source import Source
from setrnn.data.vectors import word_vectors
from setrnn.errors import DataError

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
    assert [event.detail for event in events] == ["ppmi", "ppmi"]
    assert leftovers(prepared.folder) == []


def test_a_complete_folder_is_never_replaced(data, tmp_path, monkeypatch):
    first = open_prepared(data, SETTINGS, tmp_path / "cache")
    number = first.folder.stat().st_ino
    is_prepared = cache.is_prepared
    # As if another process finished between the question and the lock.
    answers = iter([False])
    monkeypatch.setattr(cache, "is_prepared", lambda place: next(answers, is_prepared(place)))
    again = open_prepared(data, SETTINGS, tmp_path / "cache")
    assert again.folder.stat().st_ino == number


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


EVERY_WORD = TextSettings(min_count=1, stop_words="none")


def prepared_from(folder, text_settings=EVERY_WORD, **splits):
    streams = {name: partial(iter, examples) for name, examples in splits.items()}
    return prepare(streams, folder, "small", text_settings, {})


def documents(split):
    """All that a split holds, as plain lists."""
    return (
        split.ids(0, len(split)),
        [row.tolist() for row in split.tokens],
        [row.tolist() for row in split.labels],
    )


def examples_with(texts):
    return [Example(str(i), text) for i, text in enumerate(texts)]


def distinct_words(n):
    """Words that differ from each other, in no order of the alphabet."""
    every = ["".join(letters) for letters in product(string.ascii_lowercase, repeat=3)]
    return [every[i * 7919 % len(every)] + "q" for i in range(n)]


def test_frequent_features_are_tokens_and_rare_ones_are_not(tmp_path):
    train = [
        Example("1", "a", (), ("often", "once")),
        Example("2", "b", (), ("often", "twice")),
        Example("3", "c", (), ("often", "twice")),
    ]
    prepared = prepared_from(tmp_path / "p", TextSettings(min_count=2), train=train)
    features = [token for token in prepared.encoder.tokens if token.startswith("[feature]")]
    assert features == ["[feature] often", "[feature] twice"]
    one = TextSettings(min_count=1, max_features=1)
    prepared = prepared_from(tmp_path / "q", one, train=train)
    assert [token for token in prepared.encoder.tokens if "[feature]" in token] == [
        "[feature] often"
    ]


@pytest.mark.parametrize("batch", [1, 299, 300])
def test_where_batches_end_changes_nothing(
    small_prepared, small_examples, tmp_path, monkeypatch, batch
):
    monkeypatch.setattr(cache, "BATCH", batch)
    again = prepared_from(tmp_path / "p", TextSettings(), **small_examples)
    for file in small_prepared.folder.rglob("*"):
        if file.suffix == ".bin" or file.name in ("tokenizer.json", "labels.json"):
            other = again.folder / file.relative_to(small_prepared.folder)
            assert other.read_bytes() == file.read_bytes(), file.name


def test_labels_that_train_never_had_follow_the_others(tmp_path):
    prepared = prepared_from(
        tmp_path / "p",
        train=[Example("1", "x", ("b", "a")), Example("2", "y", ("b",))],
        valid=[Example("3", "x", ("z", "a"))],
        test=[Example("4", "x", ("c", "b", "z"))],
    )
    assert prepared.labels.names == ("b", "a")
    assert prepared.unseen_labels == ["z", "c"]
    assert documents(prepared.split("valid"))[2] == [[1, 2]]
    assert documents(prepared.split("test"))[2] == [[0, 2, 3]]


@pytest.mark.parametrize("limit", [1, 3, 8, 50])
def test_the_vocabulary_sample_has_the_size_asked_for_and_no_order(tmp_path, limit):
    """Each document has a word of its own: the vocabulary tells which were read for it."""
    text_settings = TextSettings(min_count=1, vocabulary_documents=limit, stop_words="none")
    for n_documents in (1, 8, 9, 101):
        train = examples_with(distinct_words(n_documents))
        prepared = prepared_from(tmp_path / "p", text_settings, train=train)
        taken = prepared.encoder.tokens[3:]
        assert len(taken) == min(limit, n_documents)
        turned = prepared_from(tmp_path / "turned", text_settings, train=train[::-1])
        assert turned.encoder.tokens[3:] == taken


text = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
examples = st.lists(
    st.builds(
        Example,
        text,
        text,
        st.lists(text, max_size=3).map(tuple),
        st.lists(text, max_size=2).map(tuple),
    ),
    max_size=6,
)


@given(examples, examples)
@settings(deadline=None, max_examples=15)
def test_any_documents_come_back(tmp_path_factory, train, test):
    prepared = prepared_from(tmp_path_factory.mktemp("any") / "p", train=train, test=test)
    names = [*prepared.labels.names, *prepared.unseen_labels]
    assert len(set(names)) == len(names)
    for split, given_ in (("train", train), ("test", test)):
        ids, tokens, labels = documents(prepared.split(split))
        assert ids == [each.id for each in given_]
        assert [{names[i] for i in row} for row in labels] == [set(each.labels) for each in given_]
        expected = prepared.encoder.encode(
            [each.text for each in given_], [each.features for each in given_]
        )
        assert tokens == [row.tolist() for row in expected]
        assert all(0 < token < prepared.encoder.n_tokens for row in tokens for token in row)


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


COLUMNS = {"text_field": "title,body", "labels_field": "topics", "id_field": "nr"}
COLUMNS["label_separator"] = ","
UNLABELLED = {name: COLUMNS[name] for name in COLUMNS if name != "labels_field"}
RAW = "nr;title;body;topics\n7;One;two;x, y\n8;Three;four;y\n"


def test_columns_are_remembered_by_a_split_folder_and_by_prepared_data(tmp_path):
    (tmp_path / "raw.csv").write_text(RAW)
    source = Source(str(tmp_path / "raw.csv"), ReadOptions(**COLUMNS))
    assert source.columns == COLUMNS
    examples = source.open().splits["train"].read(BadRows())
    write_folder({"train": examples}, tmp_path / "parts", ".jsonl", COLUMNS)
    parts = Source(str(tmp_path / "parts"))
    assert parts.columns == COLUMNS
    prepared = open_prepared(parts, TextSettings(), tmp_path / "cache")
    assert prepared.description["columns"] == COLUMNS
    (tmp_path / "parts" / "columns.json").write_text('{"text_field": "other", "mine": 1}')
    assert parts.columns == {"text_field": "other"}
    (tmp_path / "parts" / "columns.json").write_text("of another program")
    assert parts.columns == {}
    again = open_prepared(parts, TextSettings(), tmp_path / "cache")
    assert "columns" not in again.description, "the cache knows other columns"


@pytest.mark.parametrize(
    ("content", "require_labels", "taken"),
    [
        (RAW, True, COLUMNS),
        ("title;body\nOne;two\n", False, {"text_field": "title,body", "label_separator": ","}),
        ("title;body\nOne;two\n", True, {}),
        ("id,text,labels\n1,One,x;y\n", True, {}),
        ("nr;title;body\n1;One;two\n", False, UNLABELLED),
    ],
)
def test_columns_are_taken_where_the_data_has_them(tmp_path, content, require_labels, taken):
    file = tmp_path / "new.csv"
    file.write_text(content)
    source = Source(str(file), ReadOptions(require_labels=require_labels))
    found = source.with_columns(COLUMNS)
    assert found.columns == taken
    assert (found is source) == (not taken)
