"""What a model reads of a text: its words, and what became of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from setrnn.data.ragged import Ragged
from setrnn.data.tokenizing import FEATURE_PREFIX, NUMBER, UNKNOWN, TextEncoder

# What became of a word of the text.
KNOWN, AS_NUMBER, AS_UNKNOWN, STOP_WORD, CUT = "known", "number", "unknown", "stop word", "cut"
_NUMBER_AT_END = re.compile(r"\d+(?:[.,]\d+)*\Z")


@dataclass(frozen=True)
class Word:
    """A word of the text, and what became of it before the model read it."""

    text: str  # as it is written
    start: int  # where it stands among the characters
    stop: int
    fate: str  # known, number, unknown, stop word (dropped) or cut (beyond text.max_words)
    place: int | None  # which of the words read it is; None if it was not read


class Read(NamedTuple):
    """What the model reads of a document."""

    words: tuple[str, ...]
    features: tuple[str, ...]


def read_of(encoder: TextEncoder, tokens: Ragged) -> Read:
    """Name the token ids of a document, in one row."""
    known = [encoder.tokens[token] for token in tokens[0]]
    is_feature = [token.startswith(FEATURE_PREFIX) for token in known]
    return Read(
        tuple(token for token, other in zip(known, is_feature, strict=True) if not other),
        tuple(
            token[len(FEATURE_PREFIX) :]
            for token, other in zip(known, is_feature, strict=True)
            if other
        ),
    )


def words_of(encoder: TextEncoder, text: str) -> Iterator[Word]:
    """Cut a text into its words as the encoder does, and tell what becomes of each."""
    found = encoder.tokenizer.encode(text, add_special_tokens=False)
    place, end = 0, 0
    for token, token_id, (start, stop) in zip(found.tokens, found.ids, found.offsets, strict=True):
        if token == NUMBER:  # the tokenizer tells only where the number ends
            written = _NUMBER_AT_END.search(text, end, stop)
            start = start if written is None else written.start()
        end = stop
        if place >= encoder.max_words:
            yield Word(text[start:stop], start, stop, CUT, None)
        elif token_id >= encoder.n_tokens:
            yield Word(text[start:stop], start, stop, STOP_WORD, None)
        else:
            fate = {NUMBER: AS_NUMBER, UNKNOWN: AS_UNKNOWN}.get(token, KNOWN)
            yield Word(text[start:stop], start, stop, fate, place)
            place += 1


def words_read(words: Sequence[str]) -> Iterator[Word]:
    """Place words that were read as if a blank stood between each two."""
    start = 0
    for place, word in enumerate(words):
        fate = {NUMBER: AS_NUMBER, UNKNOWN: AS_UNKNOWN}.get(word, KNOWN)
        yield Word(word, start, start + len(word), fate, place)
        start += len(word) + 1


def whole_characters(text: str) -> str:
    """Put a question mark for half a character, as the encoder does."""
    return text.encode("utf-8", "replace").decode()
