"""Describe in sentences what a model read of a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING

from setrnn.data.text.alignment import AS_NUMBER, AS_UNKNOWN, CUT, STOP_WORD
from setrnn.errors import count_of, list_some

if TYPE_CHECKING:
    from setrnn.tagging.explain.explain import Explanation


def describe_reading(found: Explanation) -> Iterator[str]:
    """Describe in sentences how much of the text the model read, and how."""
    if found.note:
        yield found.note
    if found.read:
        n_read = len(found.read) - len(found.features)
        yield f"The model read {count_of(n_read, 'word')} of {len(found.words):,}."
    else:
        yield "There is nothing to read: the model would predict this for any empty text."
    subwords = found.reads_subwords
    if n := len(found.with_fate(STOP_WORD)):
        yield f"{count_of(n, 'stop word')} {'read, but not listed' if subwords else 'left out'}."
    if n := len(found.with_fate(CUT)):
        kind = (
            "parts of words (text.max_tokens and text.windows)."
            if subwords
            else "that are not stop words (text.max_words and text.windows)."
        )
        yield (
            f"{count_of(n, 'word')} cut off at the end: this model reads the first "
            f"{found.max_words:,} {kind}"
        )
    for fate, what, how in (
        (AS_UNKNOWN, "word", "unknown to the model"),
        (AS_NUMBER, "number", "read as 'a number'"),
    ):
        if names := [word.text for word in found.with_fate(fate)]:
            yield f"{count_of(len(names), what)} {how}: {_join_names(names)}."
    if found.features:
        yield f"{count_of(len(found.features), 'feature')} read after the words."
    if found.unknown_features:
        why = "too many" if subwords else "unknown to the model"
        left_out = _join_names(found.unknown_features)
        yield f"{count_of(len(found.unknown_features), 'feature')} left out, {why}: {left_out}."
    if subwords and found.steps:
        share = 1 - fsum(sum(step.weights) for step in found.steps) / len(found.steps)
        yield (
            f"{max(share, 0):.0%} of the attention of the steps is on punctuation and special "
            "tokens, which are not shown."
        )


def _join_names(names: Sequence[str], most: int = 8) -> str:
    """Join the first few names, each once."""
    return list_some([*dict.fromkeys(names)], most)
