"""The labels of a model, and documents whose labels are not all known."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reading import read
from setrnn.config import TextSettings
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import Incomplete, LabelVocabulary, distinct_sets, estimate_forgotten
from setrnn.data.prepared import write_split
from setrnn.data.ragged import Ragged
from setrnn.data.read import write_examples
from setrnn.data.statistics import dataset_statistics
from setrnn.errors import BadRowError, ModelError

names = st.text(max_size=5)
counted = st.dictionaries(names, st.integers(1, 5), max_size=12)
sets_of_ids = st.lists(st.sets(st.integers(0, 5), max_size=4).map(sorted), max_size=20)


@given(counted)
def test_labels_are_in_descending_order_of_frequency_then_by_name(counts):
    labels = LabelVocabulary.from_counts(counts)
    assert dict(zip(labels.names, labels.counts, strict=True)) == counts
    keys = [(-count, name) for name, count in zip(labels.names, labels.counts, strict=True)]
    assert keys == sorted(keys)
    assert [labels.index[name] for name in labels.names] == list(range(len(labels)))


@given(counted, st.lists(st.lists(names, max_size=4), max_size=8))
def test_known_labels_come_back_and_unknown_ones_are_left_out(counts, label_sets):
    labels = LabelVocabulary.from_counts(counts)
    encoded = labels.encode(label_sets)
    assert len(encoded) == len(label_sets)
    for row in encoded:
        assert (np.diff(row) > 0).all(), "ids must ascend, without repeats"
    named = [set(row) for row in labels.sets(encoded)]
    assert named == [set(row) & counts.keys() for row in label_sets]


@given(counted)
def test_save_and_load_change_nothing(tmp_path_factory, counts):
    labels = LabelVocabulary.from_counts(counts)
    file = tmp_path_factory.getbasetemp() / "labels.json"
    labels.save(file)
    assert LabelVocabulary.load(file) == labels


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"labels": ["a"]}',
        b'{"labels": 3, "counts": 3}',
        b'{"labels": "ab", "counts": [1, 2]}',
        b'{"labels": ["a", "b"], "counts": [1]}',
        b'{"labels": ["a", "a"], "counts": [1, 1]}',
        b'{"labels": [1], "counts": [1]}',
    ],
)
def test_a_damaged_label_file_is_refused(tmp_path, content):
    file = tmp_path / "labels.json"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=r"labels\.json") as error:
        LabelVocabulary.load(file)
    assert "\n" not in str(error.value)


@given(sets_of_ids)
def test_distinct_sets_are_counted_in_order_of_first_appearance(rows):
    support, counts = distinct_sets(Ragged.from_lists(rows))
    expected = {}
    for row in map(tuple, rows):
        expected[row] = expected.get(row, 0) + 1
    assert [tuple(row.tolist()) for row in support] == list(expected)
    assert counts.tolist() == list(expected.values())


KNOWN = Example("1", "a late goal", ("sport", "final"))
LISTED = Example("2", "rates rise", ("economy",), unknown=("markets", "sport"))
ONLY_GIVEN = Example("3", "markets fall", ("markets",), complete=False)
EXAMPLES = [KNOWN, LISTED, ONLY_GIVEN]


def made(tmp_path, examples, name="made", **splits):
    streams = {"train": lambda: examples} | {k: (lambda v=v: v) for k, v in splits.items()}
    return prepare(streams, tmp_path / name, "made", TextSettings(), {})


def weights_of(prepared, forgotten):
    return Incomplete.of(prepared.split("train"), len(prepared.labels), forgotten).log_weights()


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_a_file_that_is_written_and_read_says_the_same(tmp_path, suffix):
    write_examples(EXAMPLES, tmp_path / f"made{suffix}")
    assert read(tmp_path / f"made{suffix}") == EXAMPLES


def test_cells_of_a_table_say_what_is_unknown(tmp_path):
    (tmp_path / "a.csv").write_text(
        "text,labels,unknown,complete\ngoal,sport,,\nrates,economy,markets;sport,yes\nfall,markets,,no\n"
    )
    found = read(tmp_path / "a.csv")
    assert [(each.unknown, each.complete) for each in found] == [
        ((), True),
        (("markets", "sport"), True),
        ((), False),
    ]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"labels": ["a"], "unknown": ["a"]}, "given and unknown"),
        ({"labels": ["a"], "unknown": "b"}, "list of strings"),
        ({"labels": ["a"], "complete": "done"}, "true or false"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(tmp_path, row, words):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "x", **row}) + "\n")
    with pytest.raises(BadRowError, match=words):
        read(tmp_path / "a.jsonl")


def test_a_renamed_label_that_is_given_is_known(tmp_path):
    write_examples(
        [replace(LISTED, labels=("sport",), unknown=("Sport", "x"))], tmp_path / "a.jsonl"
    )
    (found,) = read(tmp_path / "a.jsonl", label_map={"Sport": "sport", "x": ""})
    assert (found.labels, found.unknown) == (("sport",), ())


def test_a_parent_that_a_child_brings_is_known():
    tree = replace(Hierarchy({"economy": ("markets",)}), closes_labels=True)
    (found,) = tree.close_examples([LISTED])
    assert set(found.labels) == {"economy", "markets"}
    assert found.unknown == ("sport",)


def test_prepared_data_knows_what_is_unknown(tmp_path):
    prepared = made(tmp_path, EXAMPLES, valid=[KNOWN])
    names = np.array(prepared.labels.names)
    marks = prepared.split("train").mark_unknown(len(names))
    unknown = [set(names[row]) for row in marks]
    assert unknown == [set(), {"markets", "sport"}, {"sport", "final", "economy"}]
    assert prepared.split("valid").mark_unknown(len(names)) is None
    assert [set(row) for row in prepared.labels.sets(prepared.seen_sets())] == [{"sport", "final"}]


def test_documents_with_unknown_labels_may_follow_others(tmp_path):
    known, unknown = [KNOWN] * 2, Ragged.from_lists([[1], [-1]])
    rows = Ragged.from_lists([[0], [2]])
    batches = [(known, rows, rows, marks) for marks in (None, unknown, None)]
    assert write_split(tmp_path / "whole", 10, batches) == 6
    offsets = np.fromfile(tmp_path / "whole" / "unknown_offsets.bin", dtype=np.int64)
    assert offsets.tolist() == [0, 0, 0, 1, 2, 2, 2]


def test_weights_say_what_a_set_may_hold(tmp_path):
    prepared = made(tmp_path, EXAMPLES)
    sport, economy, markets = (prepared.labels.index[n] for n in ("sport", "economy", "markets"))
    weights = weights_of(prepared, 0.25)
    assert weights[0].tolist().count(0) == 2  # what is given
    assert weights[1, sport] == weights[1, markets] == weights[1, economy] == 0
    assert np.isneginf(weights[1]).sum() == 1
    assert np.exp(weights[2]).tolist().count(0.25) == 3
    assert weights[2, markets] == 0


def test_no_share_of_forgotten_labels_makes_documents_complete(tmp_path):
    prepared = made(tmp_path, [KNOWN, ONLY_GIVEN])
    assert Incomplete.of(prepared.split("train"), 3, 0.0) is None
    assert Incomplete.of(made(tmp_path, EXAMPLES, "b").split("train"), 4, 0.0) is not None


def test_the_share_is_estimated_by_the_complete_documents(tmp_path):
    assert estimate_forgotten(made(tmp_path, [KNOWN, ONLY_GIVEN]).split("train")) == 0.5
    assert estimate_forgotten(made(tmp_path, [ONLY_GIVEN], "b").split("train")) == 0.0


def test_statistics_count_incomplete_documents():
    empty = Example("4", "cup", (), complete=False)
    found = dataset_statistics({"train": [*EXAMPLES, empty, Example("5", "draw")]}).splits["train"]
    assert (found.n_incomplete, found.n_empty_label_sets) == (3, 1)
