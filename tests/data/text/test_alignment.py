import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from setrnn.data.text.alignment import read_text
from setrnn.data.text.subwords import SubwordEncoder
from tiny_transformers import tiny_tokenizer

TEXTS = [
    "The clubs' budgets, don't rain: matches\tof police-schools!",
    "Velmara\u2019s film costs 3,200.5 (or more); été, naïve.",
    "日本 rain ไทย 😀 clubs",
]


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    return tokenizer


def metaspace():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>"]
    trainer = trainers.BpeTrainer(vocab_size=90, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    return tokenizer


TOKENIZERS = {"word pieces": tiny_tokenizer, "bytes": byte_level, "pieces": metaspace}


@pytest.fixture(scope="module", params=TOKENIZERS)
def encoder(request):
    return SubwordEncoder(TOKENIZERS[request.param](), 99)


@pytest.mark.parametrize("text", TEXTS)
def test_every_subword_is_a_part_of_its_word(encoder, text):
    reading = read_text(encoder, text, ("first one", "other"))
    assert len(reading.places) == len(reading.tokens[0])
    assert reading.features == ("first one", "other")
    assert reading.n_read == len(reading.words) + 2
    assert max(reading.places) == reading.n_read - 1
    found = encoder.tokenizer.encode(text)
    for place, (start, stop) in zip(reading.places, found.offsets, strict=False):
        if 0 <= place < len(reading.words):
            word = reading.words[place]
            assert start < word.stop
            assert word.start < stop
            assert text[word.start : word.stop] == word.text
        elif place < 0:
            assert not any(map(str.isalnum, text[start:stop]))


def test_words_are_what_people_take_as_words(encoder):
    words = [word.text for text in TEXTS for word in read_text(encoder, text).words]
    assert " ".join(words) == (
        "The clubs budgets don't rain matches of police schools Velmara\u2019s film costs 3,200.5 "
        "or more été naïve 日 本 rain ไ ท ย clubs"
    )


@given(
    st.lists(st.sampled_from(["club", "clubs", "rained", "Xyz", "matchingly", "the", "budget9"]))
)
def test_a_word_has_as_many_subwords_as_by_itself(words):
    encoder = SubwordEncoder(tiny_tokenizer(), 999)
    reading = read_text(encoder, ", ".join(words))
    assert [word.text for word in reading.words] == words
    alone = [len(ids) for ids in encoder.encode_names(words)]
    counts = reading.sum_by_word(np.ones((1, len(reading.places))))[0]
    assert counts[:-1].tolist() == alone
    assert counts[-1] == max(len(words) - 1, 0) + 2  # commas, [CLS] and [SEP]


def test_values_of_one_word_are_summed_and_nothing_is_lost():
    reading = read_text(SubwordEncoder(tiny_tokenizer(), 99), "Clubs, rain", ("bank",))
    values = np.arange(14.0).reshape(2, 7)  # [CLS] club ##s , rain bank [SEP]
    assert reading.sum_by_word(values).tolist() == [[3, 4, 5, 9], [17, 11, 12, 30]]


def test_words_beyond_the_longest_text_are_cut_and_features_replace_its_end():
    encoder = SubwordEncoder(tiny_tokenizer(), 6)
    fates = {word.text: word.fate for word in read_text(encoder, "rain club match film bank").words}
    assert [fates[word] for word in ("rain", "film", "bank")] == ["known", "known", "cut"]
    reading = read_text(encoder, "rain club match film bank", ("court", "police", "school", "the"))
    assert [word.fate for word in reading.words] == ["known", *["cut"] * 4]
    assert reading.features == ("court", "police", "school")
    assert reading.places == [-1, 0, 1, 2, 3, -1]


def test_an_unknown_word_is_said_to_be_unknown_and_a_stop_word_is_read():
    reading = read_text(SubwordEncoder(tiny_tokenizer(), 99), "The rain été ßß")
    assert [word.fate for word in reading.words] == ["stop word", "known", "known", "unknown"]
    assert [word.place for word in reading.words] == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["", "  ", "...", "😀"])
def test_a_text_without_words_has_none(encoder, text):
    reading = read_text(encoder, text)
    assert (reading.n_read, reading.words) == (0, ())
    assert reading.sum_by_word(np.ones((1, len(reading.places)))).shape == (1, 1)
