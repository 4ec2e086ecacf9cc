"""What a model did not read of a text is said."""

from dataclasses import replace

import pytest

from setrnn.config import TextSettings
from setrnn.data.text.notes import EMPTY, NOTHING_READ, note_texts
from setrnn.data.text.subwords import SubwordEncoder, join_encoders
from setrnn.data.text.words import TextEncoder, learn_tokenizer
from tiny_transformers import tiny_tokenizer

WORDS = ["storm", "coast", "budget", "vote", "match"]


@pytest.fixture(scope="module")
def encoder():
    settings = TextSettings(min_count=1)
    return TextEncoder(learn_tokenizer([" ".join(WORDS)], ["desk:sport"], settings), 4)


def notes(encoder, *texts, features=()):
    tokens = encoder.encode(texts, [features] * len(texts))
    return note_texts(encoder, texts, tokens)


def test_most_texts_have_no_notes(encoder):
    assert notes(encoder, "The storm hit the coast", "budget vote") == [(), ()]


def test_empty_texts_and_texts_without_words_are_noted(encoder):
    texts = ("", " \n", "... of the --", "storm")
    assert notes(encoder, *texts) == [(EMPTY,), (EMPTY,), (NOTHING_READ,), ()]
    # Features are not words.
    assert notes(encoder, *texts, features=["desk:sport"])[2] == (NOTHING_READ,)


def test_mostly_unknown_words_are_noted(encoder):
    half, most = notes(encoder, "storm zqxj", "storm zqxj wqw")
    assert half == ()
    assert "2 of 3 words are unknown" in most[0]


def test_texts_of_a_transformer_are_noted_too():
    subwords = SubwordEncoder(tiny_tokenizer(), 6)
    texts = ("the club bank court", "the club bank court rain", "школа", "\ud800 the " * 9, "")
    whole, cut, unknown, odd, empty = notes(subwords, *texts)
    assert whole == ()
    assert "first 6 tokens" in cut[0]
    assert "1 of 1 tokens" in unknown[0]
    assert "cut" in odd[-1]
    assert empty == (EMPTY,)


def test_a_note_of_several_tokenizers_is_given_once(encoder):
    longer = replace(encoder, max_words=5)
    joint = join_encoders([encoder, longer])
    unknown, cut = notes(joint, "zqxj wqw", " ".join(WORDS))
    assert len(unknown) == 1
    assert len(cut) == 1  # only the first one cuts
