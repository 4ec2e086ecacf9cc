import json
import re
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from setrnn.config import TextSettings
from setrnn.data.text.words import (
    FEATURE_PREFIX,
    NUMBER,
    PAD,
    SPECIAL_TOKENS,
    UNKNOWN,
    TextEncoder,
    learn_tokenizer,
    read_stop_words,
)
from setrnn.errors import ConfigError, ModelError

CORPUS = [
    "The Cup final in Lisbon: 3 goals, 70,000 people and rain!",
    "Rain stops the final; the cup must wait until 2031.",
    "Parliament votes on the budget in Lisbon, again",
]
FEATURES = ("sport", "final", "a b [PAD]", "")


def encoder_of(texts=CORPUS, features=FEATURES, **changes):
    text_settings = TextSettings(**{"min_count": 1, **changes})
    return TextEncoder(learn_tokenizer(texts, features, text_settings), text_settings.max_words)


@pytest.fixture(scope="module")
def encoder():
    return encoder_of()


def tokens_of(encoder, text, features=()):
    (row,) = encoder.encode([text], [features])
    return [encoder.tokens[index] for index in row]


def words(text, **changes):
    """The words of a text, under a vocabulary that knows them all."""
    return tokens_of(encoder_of([text], (), **{"stop_words": "none", **changes}), text)


any_text = st.text(max_size=40)
# Where tokenizers go wrong: digits and letters side by side, marks, brackets, scripts.
tricky_text = st.text(
    alphabet="03.,_- \tNUM[]PADUKSTOabcdéİßﬁ字のกั½²①Ⓐ٣\u200d😀👩'‿featur",
    max_size=30,
)
texts = st.one_of(any_text, tricky_text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("LISBON -- (rain)!?", ["lisbon", "rain"]),
        ("the Cup AND The rain, It's in", ["cup", "rain"]),
        ("rain zeppelin cup", ["rain", UNKNOWN, "cup"]),
        ("rain😀cup", ["rain", "cup"]),
        ("rain \ud83d cup", ["rain", "cup"]),  # half a character, as a damaged JSON file brings
        *((text, []) for text in ("", " \n\t", "...", "\udc00", "\x00", "👩‍👩‍👧 🇵🇹 !")),
    ],
)
def test_words_are_lower_case_and_stop_words_and_punctuation_are_out(encoder, text, found):
    assert tokens_of(encoder, text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the cup and the rain", ["the", "cup", "and", "the", "rain"]),
        ("東京タワー rain", ["東", "京", "タ", "ワ", "ー", "rain"]),
        ("국회 예산", ["국회", "예산"]),  # Korean has spaces
        ("cafe\u0301 rain", ["cafe\u0301", "rain"]),
        ("हिन्दी", ["हिन्दी"]),
        ("2024年3月", [NUMBER, "年", NUMBER, "月"]),
        ("1_000", [NUMBER, NUMBER]),
        *((text, [text.lower()]) for text in ("B2B", "3d", "x1", "2nd")),
    ],
)
def test_texts_are_split_into_words(text, found):
    assert words(text) == found


def test_features_follow_the_words_and_do_not_count_as_words():
    encoder = encoder_of(max_words=2)
    found = tokens_of(encoder, "the the rain and the cup in Lisbon", ["final", "opera"])
    assert found == ["rain", "cup", FEATURE_PREFIX + "final"]
    assert tokens_of(encoder_of(features=()), "rain", ["sport"]) == ["rain"]


def test_stop_words_come_from_a_file(tmp_path):
    file = tmp_path / "stop.txt"
    file.write_text("Cup\nfinal\n")
    found = tokens_of(encoder_of(stop_words=str(file)), "the cup final in the rain")
    assert found == ["the", "in", "the", "rain"]


@pytest.mark.parametrize("name", ["absent.txt", "."])
def test_a_stop_word_file_that_cannot_be_read_is_named(name):
    with pytest.raises(ConfigError, match="stop_words") as error:
        read_stop_words(name)
    assert "\n" not in str(error.value)


def test_ids_lie_in_the_documented_order(encoder):
    known = encoder.tokens
    assert known[:3] == [PAD, UNKNOWN, NUMBER]
    n_features = len(FEATURES)
    assert known[-n_features:] == [FEATURE_PREFIX + name for name in FEATURES]
    assert len(known) == encoder.n_tokens == len(set(known))
    counts = Counter(re.findall(r"[a-z]+", " ".join(CORPUS).lower()))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    stop_words = read_stop_words("english")
    assert known[3:-n_features] == [word for word in ranked if word not in stop_words]


@pytest.mark.parametrize("number", ["3", "007", "70,000", "1.5", "1.000.000,50", "2031"])
@pytest.mark.parametrize("frame", ["{}", "rain {} rain", "({})", "-{}%", "${}.", "rain-{}", "{};"])
def test_numbers_are_one_special_token(encoder, number, frame):
    found = tokens_of(encoder, frame.format(number))
    assert [token for token in found if token != "rain"] == [NUMBER]


@given(texts)
@settings(deadline=None)
@example("3①")
@example("字3")
@example("a_3")
def test_no_word_is_made_of_digits_and_none_holds_the_number_token(text):
    for word in words(text):
        if word not in SPECIAL_TOKENS:
            assert not (word.isascii() and word.isdigit())
            assert NUMBER not in word


@pytest.mark.parametrize("text", ["NUM num Num", "[PAD]", "[UNK]", "[STOP WORDS]", "[pad] PAD"])
def test_the_names_of_the_specials_are_ordinary_text(encoder, text):
    assert set(tokens_of(encoder, text)) <= {UNKNOWN}
    assert not set(words(text)) & {PAD, UNKNOWN, NUMBER}


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=3))
@settings(deadline=None, max_examples=50)
def test_features_never_share_a_token_with_words(corpus, names):
    features = list(dict.fromkeys(names))
    encoder = encoder_of([*corpus, *features], features, stop_words="none")
    n_words = encoder.n_tokens - len(features)
    for text in (*corpus, *features):
        (row,) = encoder.encode([text])
        assert (row < n_words).all()
    (row,) = encoder.encode([""], [features])
    assert row.tolist() == list(range(n_words, encoder.n_tokens))


@given(st.lists(texts, max_size=6))
@settings(deadline=None, max_examples=50)
def test_a_text_is_encoded_the_same_alone_and_in_a_batch(batch):
    encoder = encoder_of()
    together = [row.tolist() for row in encoder.encode(batch)]
    assert together == [encoder.encode([text])[0].tolist() for text in batch]


@pytest.mark.parametrize("stop_words", ["english", "none"])
def test_save_and_load_change_nothing(tmp_path, stop_words):
    encoder = encoder_of(stop_words=stop_words)
    encoder.save(tmp_path / "tokenizer.json")
    loaded = TextEncoder.load(tmp_path / "tokenizer.json", encoder.max_words)
    assert loaded.tokens == encoder.tokens
    assert loaded.n_tokens == encoder.n_tokens
    batch = [*CORPUS, "", "NUM 3 [PAD] 字 zeppelin"]
    features = [FEATURES] * len(batch)
    before, after = encoder.encode(batch, features), loaded.encode(batch, features)
    np.testing.assert_array_equal(after.values, before.values)
    np.testing.assert_array_equal(after.offsets, before.offsets)


def refused(file):
    with pytest.raises(ModelError) as error:
        TextEncoder.load(file, 10)
    message = str(error.value)
    assert file.name in message
    assert "\n" not in message


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe", b'{"model":3}'])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path, content):
    refused(tmp_path / "tokenizer.json")  # there is none
    (tmp_path / "tokenizer.json").write_bytes(content)
    refused(tmp_path / "tokenizer.json")


def test_a_tokenizer_of_another_kind_is_refused(tmp_path, encoder):
    values = json.loads(encoder.tokenizer.to_str())
    vocabulary = values["model"]["vocab"]
    values["model"]["vocab"] = {token: i for token, i in vocabulary.items() if "[" not in token}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(values))
    refused(file)


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_a_damaged_tokenizer_is_refused_or_loads(tmp_path_factory, data):
    """One byte is changed: any error is a ModelError."""
    content = bytearray(encoder_of().tokenizer.to_str().encode())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.getbasetemp() / "damaged_tokenizer.json"
    file.write_bytes(content)
    with suppress(ModelError):
        TextEncoder.load(file, 10)
