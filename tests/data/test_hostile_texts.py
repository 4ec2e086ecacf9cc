"""Texts made to break a tokenizer: long runs without spaces, digits, marks."""

import pytest
from tokenizers import Regex, pre_tokenizers

from setrnn.config import TextSettings
from setrnn.data.text.alignment import read_text
from setrnn.data.text.subwords import SubwordEncoder
from setrnn.data.text.words import (
    MAX_RUN,
    NUMBER,
    UNKNOWN,
    TextEncoder,
    break_runs,
    learn_tokenizer,
)
from setrnn.errors import BadRowError
from setrnn.tagging.inputs import encode_batches
from tiny_transformers import tiny_tokenizer

N = 1_500_000
DIGITS = "9" * 5_500_000 + "a"  # as many as the expression of numbers failed on
HOSTILE = {
    "digits and a letter": DIGITS,
    "digits and commas": "9," * (N // 2) + "9a",
    "one word": "a" * N,
    "letters and digits": "a9" * (N // 2),
    "marks": "a" + "\u0301" * N,
    "digits and underscores": "9_" * (N // 4),
    "unspaced with a mark": "漢" + "\u0301" * N,
    "spaces": " " * N,
    "dots": "." * N,
}


@pytest.fixture(scope="module")
def encoder():
    settings = TextSettings(min_count=1)
    return TextEncoder(learn_tokenizer(["rain on the 漢字 final"], (), settings), 500)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_defeats_the_tokenizer(encoder, text):
    first, last = encoder.encode([text, "rain"])
    assert len(first) <= 500
    assert [encoder.tokens[each] for each in last] == ["rain"]


def test_no_text_defeats_the_learning_of_a_vocabulary():
    settings = TextSettings(min_count=1, max_words=1_000_000)
    learned = learn_tokenizer([DIGITS, "rain"], (), settings)
    assert learned.token_to_id("rain") is not None


def test_a_run_without_spaces_is_broken_only_beyond_the_limit():
    run = "a" * MAX_RUN
    text = f"{run} {run}\n{run}"
    assert break_runs(text) is text
    assert break_runs(f"b {run}cd e") == f"b {run} cd e"
    assert "".join(break_runs("漢" * 250_000).split()) == "漢" * 250_000


def test_scripts_without_spaces_lose_nothing(encoder):
    text = "漢字" * MAX_RUN
    wide = TextEncoder(encoder.tokenizer, 1_000_000)
    assert len(wide.encode([text]).values) == len(text)


def test_what_a_number_is_has_not_changed(encoder):
    texts = {
        "1,2a": [NUMBER, UNKNOWN],
        "99a": [UNKNOWN],
        "a99": [UNKNOWN],
        "1.2.3,4": [NUMBER],
        "1,2,3x final": [NUMBER, UNKNOWN, "final"],
        "1..2": [NUMBER, NUMBER],
        "1.": [NUMBER],
    }
    found = {text: [encoder.tokens[each] for each in encoder.encode([text])[0]] for text in texts}
    assert found == texts


@pytest.fixture
def panicking():
    """A pretrained tokenizer whose expression takes too many steps for a run of letters."""
    tokenizer = tiny_tokenizer()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(a+)+$"), "isolated")
    return SubwordEncoder(tokenizer, 16)


@pytest.mark.filterwarnings("ignore")
def test_a_tokenizer_that_fails_is_an_error_that_names_the_text(panicking, tmp_path):
    bad = "a" * 60 + "b"
    with pytest.raises(BadRowError, match="Text 2: the tokenizer fails"):
        panicking.encode(["rain", "club", bad])
    with pytest.raises(BadRowError, match="Text 5: the tokenizer fails"):
        list(encode_batches(panicking, [("rain", ())] * 5 + [(bad, ())], 2))
    with pytest.raises(BadRowError, match="Text 0: the tokenizer fails"):
        panicking.encode_names([bad])
    with pytest.raises(BadRowError, match="Text 0: the tokenizer fails"):
        read_text(panicking, bad)
    assert len(panicking.encode(["rain"]).values), "it can be used again"


def test_a_row_that_is_not_a_string_is_named(encoder):
    with pytest.raises(BadRowError, match="Text 1: must be a string, got int"):
        encoder.encode(["rain", 3])
