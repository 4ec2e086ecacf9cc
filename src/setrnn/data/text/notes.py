"""Say what a model does not read: what is cut of texts, empty or unknown."""

# n documents, T tokens of all documents

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from setrnn.config import WORDS, TextSettings
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import SubwordEncoder, split_rows
from setrnn.data.text.words import UNKNOWN, TextEncoder

MAX_UNKNOWN = 0.5  # of the words of a text, without a note
EMPTY = "The text is empty."
NOTHING_READ = "The text has no words that the model reads."
_UNKNOWN_END = "are unknown to the model."
MAX_SUGGESTED = 16  # windows
MAX_CUT = 0.01  # of the documents, with the suggested number of windows


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
    for index in np.flatnonzero(n_unknown > MAX_UNKNOWN * n_words).tolist():
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


def describe_cut_documents(
    n_windows: Mapping[str, Mapping[int, int]], settings: TextSettings
) -> str | None:
    """Return one line on the documents that are cut; None if none is.

    `n_windows` is the number of documents of each split by the windows that their text fills.

    Example:
        >>> describe_cut_documents({"train": {1: 90, 2: 9, 7: 1}}, TextSettings())
        'Cut after 500 words: 10.0% of train. To read up to 1,000 words: --set text.windows=2'
    """
    shares = {name: _share_above(each, settings.windows) for name, each in n_windows.items()}
    if not any(shares.values()):
        return None
    total = sum((Counter(each) for each in n_windows.values()), Counter[int]())
    wanted = settings.windows + 1
    while wanted < MAX_SUGGESTED and _share_above(total, wanted) > MAX_CUT:
        wanted += 1
    kind = "words" if settings.tokenizer == WORDS else "tokens"
    cut = ", ".join(f"{_percent(share)} of {name}" for name, share in shares.items() if share)
    return (
        f"Cut after {settings.window * settings.windows:,} {kind}: {cut}. To read up to "
        f"{settings.window * wanted:,} {kind}: --set text.windows={wanted}"
    )


def _share_above(n_windows: Mapping[int, int], most: int) -> float:
    """Return the share of documents that fill more windows."""
    n_above = sum(count for n, count in n_windows.items() if n > most)
    return n_above / max(sum(n_windows.values()), 1)


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
