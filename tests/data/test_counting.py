"""Counts that are added are those of all documents, in any order and in any pieces."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setrnn.config import TextSettings
from setrnn.data.counting import (
    Counts,
    Sample,
    count_documents,
    count_saved_words,
    find_highest_hash,
    find_shared_id,
    hash_text,
)
from setrnn.data.example import Example
from setrnn.data.tokenizing import rank_words, split_words

WORDS = TextSettings(min_count=1, vocabulary_documents=5)
ODD = ["Rain, 1,234.5 and a2 b_c", "漢字 final ไทย", "x" * 50, "", "don't ①"]
texts = st.lists(st.sampled_from(ODD) | st.text("ab 1,.", max_size=9), max_size=12)


def ignore(n_documents):
    pass


@given(texts, st.integers(1, 3))
def test_words_counted_one_by_one_are_those_of_the_tokenizer(texts, min_count):
    words = Counter(word for text in texts for word in split_words(text))
    ranked = sorted(words, key=lambda word: (-words[word], word))
    assert [w for w in ranked if words[w] >= min_count] == rank_words(texts, min_count)


@given(st.lists(st.integers(0, 20), max_size=40), st.integers(1, 6), st.integers(0, 40))
def test_a_sample_has_the_lowest_hashes_with_all_their_repeats(hashes, limit, cut):
    lowest = sorted(set(hashes))[:limit]
    expected = [(each, f"text {each}", hashes.count(each)) for each in lowest]
    whole, first, second = Sample(limit), Sample(limit), Sample(limit)
    for number, hashed in enumerate(hashes):
        whole.add(hashed, f"text {hashed}")
        (first if number < cut else second).add(hashed, f"text {hashed}")
    assert whole.rows() == expected
    for row in second.rows():
        first.add(*row)
    assert first.rows() == expected


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("123"), st.sampled_from(ODD)), max_size=20))
def test_saved_pieces_have_the_words_of_all_documents(tmp_path_factory, documents):
    examples = [Example(name, text, ("a",), (name,)) for name, text in documents]
    expected = count_documents(examples, WORDS, ignore)
    folder, total = tmp_path_factory.mktemp("pieces"), Counts(WORDS)
    places = [folder / str(number) for number in range(3)]
    for number, place in enumerate(places):
        count_documents(examples[number::3], WORDS, ignore).save(place)
        total.add_saved(place)
    most = find_highest_hash(places, WORDS.vocabulary_documents)
    for place in places:
        count_saved_words(place, most, place / "words")
        total.add_saved_words(place / "words")
    assert total.frequent_words() == expected.frequent_words()
    assert (total.labels, total.features) == (expected.labels, expected.features)
    assert total.n_documents == expected.n_documents


@pytest.mark.parametrize(
    ("pieces", "place"),
    [
        ([], None),
        ([[1, 2], [], [3]], None),
        ([[1, 1], [2, 2]], None),
        ([[5, 6], [7, 6], [5]], (1, 1)),
        ([[5], [6], [7, 7, 5, 6]], (2, 2)),
    ],
)
def test_the_first_id_that_an_earlier_piece_has_is_found(pieces, place):
    assert find_shared_id([np.array(each, dtype=np.uint64) for each in pieces]) == place


def test_hashes_are_the_same_in_every_process():
    assert hash_text("rain") == 16087700009325496637
