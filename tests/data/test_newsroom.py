"""The embedded corpus, as users get it."""

import hashlib

from setrnn.data import newsroom
from setrnn.data.read import BadRows, ReadOptions, open_dataset

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


def test_options_for_the_fields_of_files_do_not_change_it():
    options = ReadOptions(text_field="title,body", labels_field="tags", id_field="key")
    dataset = open_dataset("newsroom", options)
    assert next(dataset.splits["test"].read(BadRows())) == next(newsroom.examples("test"))
