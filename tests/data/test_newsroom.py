"""The embedded corpus, as users get it."""

import hashlib

import pytest

from setrnn.data import newsroom
from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.errors import DataError

SIZES = {"train": 4800, "valid": 600, "test": 600}


def test_the_corpus_is_the_one_our_results_are_measured_on():
    # A change of wording changes every result.
    whole = "\n".join(
        f"Example(id={e.id!r}, text={e.text!r}, labels={e.labels!r}, features={e.features!r})"
        for split in SIZES
        for e in newsroom.examples(split)
    )
    digest = hashlib.sha256(whole.encode()).hexdigest()
    assert digest == "3ecc97b5e334f3e2d377694ea5e62d9ac7b073f266616a52e58515b02bdc5d9d"


def test_a_split_streams_the_same_twice_and_skips_nothing():
    splits = open_dataset("newsroom").splits
    bad_rows = BadRows()
    for name, size in SIZES.items():
        first = list(splits[name].read(bad_rows))
        assert len(first) == size
        assert first == list(splits[name].read(bad_rows)) == list(newsroom.examples(name))
    assert bad_rows.n_skipped == 0


def test_options_for_the_fields_of_files_do_not_change_it():
    options = ReadOptions(text_field="title,body", labels_field="tags", id_field="key")
    dataset = open_dataset("newsroom", options)
    assert next(dataset.splits["test"].read(BadRows())) == next(newsroom.examples("test"))


def test_an_unknown_split_is_refused_with_those_found():
    with pytest.raises(DataError, match=r"'trian'.*train"):
        newsroom.examples("trian")


def test_it_says_that_it_is_synthetic():
    assert "SYNTHETIC" in newsroom.DESCRIPTION
    assert next(newsroom.examples("train")).id == "synthetic-000000"
