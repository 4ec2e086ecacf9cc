"""What is cut: counted while data is prepared and shown, and the rows of several windows."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setrnn.config import TextSettings
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.data.text.alignment import read_text
from setrnn.data.text.notes import describe_cut_documents, note_texts
from setrnn.data.text.subwords import SubwordEncoder, load_text_encoder
from setrnn.data.text.words import TextEncoder, learn_tokenizer
from tiny_transformers import tiny_tokenizer

NINE = "rain club match film bank court police school budget"
PIECES = st.sampled_from(
    ["rain", "the", "a,b,c", "漢字", "x漢y", "3.5", "été", "..", "ไทย", "\ud800"]
)


@settings(max_examples=15)
@given(st.lists(PIECES, max_size=12))
def test_a_text_is_counted_without_a_vocabulary_as_with_one(pieces):
    words, text = TextSettings(max_words=3, min_count=1), " ".join(pieces)
    encoder = TextEncoder(learn_tokenizer(["rain 漢"], (), words), 3, 100)
    n_words = int(encoder.encode([text]).lengths[0])
    blank = TextEncoder(learn_tokenizer((), (), words), 3)
    assert blank.count_windows(blank.tokenize([text])) == [max(-(-n_words // 3), 1)]
    assert encoder.count_windows(encoder.tokenize([text])) == [max(-(-n_words // 3), 1)]


def test_words_are_read_up_to_the_last_window():
    words = TextSettings(max_words=3, windows=2, min_count=1)
    encoder = TextEncoder(learn_tokenizer([NINE], ["desk"], words), 3, 2)
    row = encoder.encode([NINE], [["desk"]])[0].tolist()
    assert [encoder.tokens[each] for each in row] == [*NINE.split()[:6], "[feature] desk"]
    assert [each.fate for each in read_text(encoder, NINE).words] == ["known"] * 6 + ["cut"] * 3
    ((note,), whole) = note_texts(encoder, [NINE, NINE[:24]], encoder.encode([NINE, NINE[:24]]))
    assert "6 of its 9 words" in note
    assert whole == ()
    assert not encoder.is_same(replace(encoder, windows=3))


def test_each_window_of_a_transformer_has_its_special_tokens():
    encoder = SubwordEncoder(tiny_tokenizer(), 6, 2)
    assert spell(encoder, "rain club match film") == "[CLS] rain club match film [SEP]"
    assert spell(encoder, NINE) == (
        "[CLS] rain club match film [SEP] [CLS] bank court police school [SEP]"
    )
    assert encoder.count_windows(encoder.tokenize(["", "rain club match film", NINE])) == [1, 1, 3]
    assert "12 tokens" in note_texts(encoder, [NINE], encoder.encode([NINE]))[0][0]
    eight = " ".join(NINE.split()[:8])
    assert note_texts(encoder, [eight], encoder.encode([eight])) == [()]


def test_features_follow_the_text_into_the_next_window_and_replace_its_end_in_the_last():
    encoder = SubwordEncoder(tiny_tokenizer(), 6, 2)
    assert spell(encoder, "rain club match film", "bank", "court") == (
        "[CLS] rain club match film [SEP] [CLS] bank court [SEP]"
    )
    assert spell(encoder, NINE, "bank", "court") == (
        "[CLS] rain club match film [SEP] [CLS] bank court bank court [SEP]"
    )
    assert spell(SubwordEncoder(tiny_tokenizer(), 6), NINE, "bank", "court") == (
        "[CLS] rain club bank court [SEP]"
    )


def test_words_of_every_window_are_found_in_the_text():
    encoder = SubwordEncoder(tiny_tokenizer(), 6, 3)
    text = "Clubs rained, matches budgets filming schools"  # two subwords each, and a comma
    reading = read_text(encoder, text, ("bank",))
    assert len(reading.places) == len(reading.tokens[0])
    assert [text[each.start : each.stop] for each in reading.words] == text.replace(",", "").split()
    assert [each.fate for each in reading.words] == ["known"] * 5 + ["cut"]
    counts = reading.sum_by_word(np.ones((1, len(reading.places))))[0]
    assert counts.tolist() == [2, 2, 3, 2, 1, 1, 7]  # "matches", a cut "filming", "bank", others


@pytest.mark.parametrize("windows", [1, 2])
def test_a_prepared_folder_counts_what_is_cut(tmp_path, windows):
    words = TextSettings(max_words=3, windows=windows, min_count=1)
    texts = [NINE, NINE[:30], "rain club", "", "the of a rain"]
    examples = [Example(str(n), text, ("x",)) for n, text in enumerate(texts)]
    streams = {name: partial(iter, examples[start:]) for name, start in (("train", 0), ("test", 2))}
    prepared = prepare(streams, tmp_path / "p", "news", words, {})
    assert prepared.n_windows == {"train": {1: 3, 2: 1, 3: 1}, "test": {1: 3}}
    assert prepared.split("train").tokens.lengths.tolist() == [
        3 * windows,
        *([3, 2, 0, 1] if windows == 1 else [6, 2, 0, 1]),
    ]
    assert load_text_encoder(tmp_path / "p" / "tokenizer.json", words).windows == windows
    said = describe_cut_documents(prepared.n_windows, prepared.text_settings)
    share = "40.0% of train" if windows == 1 else "20.0% of train"
    assert share in said
    assert "test" not in said
    assert "--set text.windows=3" in said


def test_nothing_is_said_if_nothing_is_cut_or_known():
    assert describe_cut_documents({"train": {1: 5, 4: 2}}, TextSettings(windows=4)) is None
    assert describe_cut_documents({}, TextSettings()) is None


def spell(encoder, text, *features):
    row = encoder.encode([text], [features])[0].tolist()
    return " ".join(encoder.tokens[each] for each in row)
