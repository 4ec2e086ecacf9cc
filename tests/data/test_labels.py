import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.data.labels import LabelVocabulary, distinct_sets
from setrnn.data.ragged import Ragged
from setrnn.errors import ModelError

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
