"""Say what a model did not read of a text: what was cut, empty or unknown."""

# n documents, T tokens of all documents

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.data.text.joint import split_rows
from setrnn.data.text.subwords import SubwordEncoder
from setrnn.data.text.words import UNKNOWN, TextEncoder

MOST_UNKNOWN = 0.5  # of the words of a text, without a note
EMPTY = "The text is empty."
NOTHING_READ = "The text has no words that the model reads."
_UNKNOWN_END = "are unknown to the model."


def is_unread(notes: Sequence[str]) -> bool:
    """Return whether the notes of a text say that the model read nothing, or little of it.

    Example:
        >>> is_unread([EMPTY]), is_unread(["The text was cut: the model read 5 of its 9 words."])
        (True, False)
    """
    return any(each in (EMPTY, NOTHING_READ) or each.endswith(_UNKNOWN_END) for each in notes)


def note_texts(encoder: TextEncoder, texts: Sequence[str], tokens: Ragged) -> list[tuple[str, ...]]:
    """Return the notes of each text, given its token ids; most texts have none."""
    notes: list[list[str]] = [[] for _ in texts]
    parts = encoder.parts
    for part, rows in zip(parts, split_rows(tokens, len(parts)), strict=True):
        for index, note in _note_rows(part, texts, rows):
            notes[index].append(note)
    return [
        (EMPTY,) if not text.strip() else tuple(dict.fromkeys(found))
        for text, found in zip(texts, notes, strict=True)
    ]


def _note_rows(
    encoder: TextEncoder, texts: Sequence[str], rows: Ragged
) -> Iterator[tuple[int, str]]:
    """Yield the number of a text and a note, for one tokenizer."""
    values, n = np.asarray(rows.values), len(rows)
    row_of_token = np.repeat(np.arange(n), rows.lengths)  # (T,)
    if isinstance(encoder, SubwordEncoder):
        n_windows = np.maximum(-(-rows.lengths // encoder.max_words), 1)
        kind, n_special = "tokens", n_windows * sum(encoder.n_special)  # (n,)
        is_word = np.ones(len(values), dtype=bool)
    else:
        kind, n_special = "words", np.zeros(n, dtype=np.int64)
        is_word = ~np.isin(values, [*encoder.feature_ids.values()])
    n_words = np.bincount(row_of_token[is_word], minlength=n) - n_special  # (n,)
    n_unknown = np.bincount(row_of_token[values == _unknown_token(encoder)], minlength=n)  # (n,)
    for index in np.flatnonzero(n_words == 0).tolist():
        yield index, NOTHING_READ
    for index in np.flatnonzero(n_unknown > MOST_UNKNOWN * n_words).tolist():
        yield index, f"{n_unknown[index]:,} of {n_words[index]:,} {kind} {_UNKNOWN_END}"
    for index in np.flatnonzero(n_words + n_special >= encoder.limit).tolist():
        if note := _note_cut(encoder, texts[index]):
            yield index, note


def _note_cut(encoder: TextEncoder, text: str) -> str | None:
    """Describe what was cut off a text that is as long as a text may be; None if nothing was."""
    (found,) = encoder.tokenize([text])
    if isinstance(encoder, SubwordEncoder):
        is_cut = encoder.count_windows([found])[0] > encoder.windows
        read = f"the model read its first {encoder.limit:,} tokens"
        return f"The text was cut: {read}." if is_cut else None
    n_words = sum(token < encoder.n_tokens for token in found.ids)
    if n_words <= encoder.limit:
        return None
    return f"The text was cut: the model read {encoder.limit:,} of its {n_words:,} words."


def _unknown_token(encoder: TextEncoder) -> int:
    name = UNKNOWN
    if isinstance(encoder, SubwordEncoder):
        name = getattr(encoder.tokenizer.model, "unk_token", None) or UNKNOWN
    token = encoder.tokenizer.token_to_id(name)
    return -1 if token is None else token
