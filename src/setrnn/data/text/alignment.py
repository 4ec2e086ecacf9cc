"""What a model reads of a document, word by word: the words behind its tokens."""

# T tokens of a document, R words and features that are read

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, pre_tokenizers

from setrnn.config import AUTO
from setrnn.data.ragged import Ragged
from setrnn.data.text.languages import read_stop_words
from setrnn.data.text.subwords import SubwordEncoder
from setrnn.data.text.words import (
    FEATURE_PREFIX,
    NUMBER,
    SPACED,
    UNKNOWN,
    WHOLE_NUMBER,
    WORD,
    TextEncoder,
)

# What happened to a word of the text.
KNOWN, AS_NUMBER, AS_UNKNOWN, STOP_WORD, CUT = "known", "number", "unknown", "stop word", "cut"
_FATES = {NUMBER: AS_NUMBER, UNKNOWN: AS_UNKNOWN}  # of tokens; the others are known
_NUMBER_AT_END = re.compile(r"\d+(?:[.,]\d+)*\Z")
# The words of a text whose tokens are parts of words, whatever its tokenizer takes as a word.
_WORDS = pre_tokenizers.Split(
    Regex(rf"{WHOLE_NUMBER}|{SPACED}+(?:['\u2019]{SPACED}+)*|{WORD}"), "removed", invert=True
)
NOWHERE = -1

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Word:
    """A word of a text, and what the encoder made of it."""

    text: str  # as written
    start: int  # its first character in the text
    stop: int
    # known, number, unknown, cut (beyond the longest text), or stop word: removed by an encoder of
    # words, read by a transformer
    fate: str
    place: int | None  # its position among the words that the model reads; None if not read


@dataclass(frozen=True)
class AlignedText:
    """A document as a model reads it."""

    tokens: Ragged  # one row
    words: tuple[Word, ...]
    features: tuple[str, ...]  # those that are read, after the words
    # (T,) the place of each token among the words and features that are read; -1 for special
    # tokens and punctuation.
    places: Sequence[int]

    @cached_property
    def n_read(self) -> int:
        """The number of words and features that are read."""
        return sum(word.place is not None for word in self.words) + len(self.features)

    def sum_by_word(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Sum values of tokens (N, T) by word and feature; the last column has all others."""
        found: npt.NDArray[np.float64] = np.zeros((self.n_read + 1, len(values)))  # -1: the last
        np.add.at(found, np.asarray(self.places, dtype=np.int64), values.T)
        by_word: npt.NDArray[np.float64] = found.T
        return by_word


def read_text(
    encoder: TextEncoder, text: str, features: Sequence[str] = (), language: str = AUTO
) -> AlignedText:
    """Encode a document, and find the words and features of its tokens.

    A transformer reads stop words; those of the language are marked.
    """
    if isinstance(encoder, SubwordEncoder):
        return _read_subwords(encoder, text, features, read_stop_words(AUTO, language))
    tokens = encoder.encode([text], [features])
    known = [encoder.tokens[token] for token in tokens[0]]
    read = (name for name in known if name.startswith(FEATURE_PREFIX))
    names = tuple(name.removeprefix(FEATURE_PREFIX) for name in read)
    return AlignedText(tokens, (*words_of(encoder, text),), names, range(len(tokens[0])))


def words_of(encoder: TextEncoder, text: str) -> Iterator[Word]:
    """Yield the words of a text and what the encoder makes of each."""
    found = encoder.tokenizer.encode(text, add_special_tokens=False)
    place, end = 0, 0
    for token, token_id, (start, stop) in zip(found.tokens, found.ids, found.offsets, strict=True):
        if token == NUMBER:  # the tokenizer gives only the end of a number
            written = _NUMBER_AT_END.search(text, end, stop)
            start = start if written is None else written.start()
        end = stop
        if place >= encoder.limit:
            yield Word(text[start:stop], start, stop, CUT, None)
        elif token_id >= encoder.n_tokens:
            yield Word(text[start:stop], start, stop, STOP_WORD, None)
        else:
            yield Word(text[start:stop], start, stop, _FATES.get(token, KNOWN), place)
            place += 1


def _read_subwords(
    encoder: SubwordEncoder, text: str, features: Sequence[str], stop_words: Set[str]
) -> AlignedText:
    """Find the word or feature that each subword is a part of."""
    tokens = encoder.encode([text], [features])  # refuses a text that the tokenizer fails on
    tokenizer, unknown = encoder.tokenizer, getattr(encoder.tokenizer.model, "unk_token", None)
    found = tokenizer.encode(text)
    spans = [span for _, span in _WORDS.pre_tokenize_str(text)]
    windows = encoder.cut(found)
    words = [[_find_span(spans, span, text) for span in each.offsets] for each in windows]
    names = " ".join(features)
    stops = np.cumsum([len(name) + 1 for name in features], dtype=np.int64) - 1
    name_spans = [
        (stop - len(name), stop) for stop, name in zip(stops.tolist(), features, strict=True)
    ]
    tags = tokenizer.encode(names, add_special_tokens=False)
    of_names = [_find_span(name_spans, span, names) for span in tags.offsets]
    # Features are numbered after all words until it is known how many of these are read.
    numbered = [len(spans) + each if each >= 0 else NOWHERE for each in of_names]
    row = encoder.join_windows(words, numbered)
    n_words = max((each for each in row if each < len(spans)), default=NOWHERE) + 1
    read = sorted({each for each in row if each >= len(spans)})
    place_of = {number: n_words + rank for rank, number in enumerate(read)}
    tokens_read = chain.from_iterable(each.tokens for each in windows)
    known = {
        word
        for word, token in zip(chain.from_iterable(words), tokens_read, strict=True)
        if token != unknown
    }

    def make_word(number: int, start: int, stop: int) -> Word:
        written = text[start:stop]
        if number >= n_words:
            return Word(written, start, stop, CUT, None)
        fate = STOP_WORD if written.lower() in stop_words else KNOWN
        return Word(written, start, stop, fate if number in known else AS_UNKNOWN, number)

    return AlignedText(
        tokens=tokens,
        words=tuple(make_word(number, *span) for number, span in enumerate(spans)),
        features=tuple(features[number - len(spans)] for number in read),
        places=[place_of.get(each, each) for each in row],
    )


def _find_span(spans: Spans, span: tuple[int, int], text: str) -> int:
    """Return the first of ascending spans that a span of a text overlaps; -1 if there is none."""
    start, stop = span
    while start < stop and text[start].isspace():  # some tokens begin with a space
        start += 1
    place = bisect_right(spans, start, key=lambda each: each[1])
    return place if place < len(spans) and spans[place][0] < stop else NOWHERE
