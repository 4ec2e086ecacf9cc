"""Documents to tag next are uncertain, differ from each other, and are new to the model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import setrnn
from setrnn.data.read import write_examples
from setrnn.data.source import Source
from setrnn.errors import ConfigError, DataError
from setrnn.tagging.choose import choose_distinct


@pytest.fixture(scope="module")
def pool(small_examples):
    return small_examples["test"]


def ids(chosen):
    return [each.example.id for each in chosen]


def test_every_kind_of_model_chooses_and_always_the_same(tagger, pool):
    chosen = setrnn.choose(tagger, pool, 10)
    assert len(set(ids(chosen))) == 10
    assert ids(setrnn.choose(tagger, pool, 10)) == ids(chosen)
    assert ids(setrnn.choose(tagger, pool, 4)) == ids(chosen)[:4]
    first = chosen[0]
    (alone,) = tagger.tag([first.example.text], features=[first.example.features])
    assert first.prediction.labels == alone.labels
    assert all(0.1 <= p <= 0.9 and label in first.reason for label, p in first.undecided.items())


def test_trained_repeated_and_empty_documents_are_left_out(taggers, small_examples, pool, notes):
    loud = replace(pool[0], id="again", text=f"  {pool[0].text.upper()}\n")
    empty = replace(pool[0], id="empty", text=" \n")
    documents = [*small_examples["train"], *pool, loud, empty]
    chosen = setrnn.choose(taggers["mixture"], documents, 1000)
    assert sorted(ids(chosen)) == sorted(each.id for each in pool)
    assert "300 that the model was trained on, 1 whose text" in notes.texts[0]
    assert "all are chosen" in notes.texts[1]


def test_labels_of_the_pool_are_not_used(taggers, pool):
    other = [replace(each, labels=("unheard-of",)) for each in pool]
    assert ids(setrnn.choose(taggers["br"], pool, 5)) == ids(setrnn.choose(taggers["br"], other, 5))


def test_what_cannot_be_chosen_from_is_refused(taggers, pool, small_prepared, small_examples):
    for documents in ([], small_examples["train"]):
        with pytest.raises(DataError, match="nothing is left"):
            setrnn.choose(taggers["br"], documents)
    with pytest.raises(ConfigError, match="n must be"):
        setrnn.choose(taggers["br"], pool, 0)
    with pytest.raises(DataError, match="Example"):
        setrnn.choose(taggers["br"], iter(["a text"]))
    with pytest.raises(DataError, match="prepared"):
        setrnn.choose(taggers["br"], small_prepared.folder)


def test_bad_rows_are_skipped_if_asked(taggers, pool, tmp_path, notes):
    file = tmp_path / "pool.jsonl"
    write_examples(pool[:3], file)
    file.write_text(file.read_text() + "{\n")
    with pytest.raises(DataError, match="line 4"):
        setrnn.choose(taggers["br"], file)
    source = Source(str(file), on_bad_row="skip")
    assert len(setrnn.choose(taggers["br"], source, 3)) == 3
    assert "1 rows could not be read" in notes.warnings[0]


def test_sure_documents_come_last_and_equal_ones_are_not_taken_together():
    """Rows 0 and 1 are the same text, row 2 is another one, row 3 is certain."""
    words = sparse.csr_matrix([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    assert choose_distinct(np.array([0.9, 0.9, 0.5, 0.0]), words, 4) == [0, 2, 1, 3]


def test_similar_documents_count_less():
    """The cosine to the first is 0.8: 0.6 * (1 - 0.64) is less than 0.3."""
    words = sparse.csr_matrix([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    assert choose_distinct(np.array([0.9, 0.6, 0.3]), words, 2) == [0, 2]
    assert choose_distinct(np.array([0.9, 0.9, 0.3]), words, 2) == [0, 1]


def test_the_expected_f1_is_that_of_certain_labels(taggers, pool):
    for each in setrnn.choose(taggers["set-rnn-exact"], pool, 60):
        assert 0 <= each.expected_f1 <= 1
        if each.prediction.probability > 0.99:
            assert each.expected_f1 > 0.95
