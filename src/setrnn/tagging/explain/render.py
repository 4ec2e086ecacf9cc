"""Show an explanation: sentences on what was read, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING

from setrnn.data.text.alignment import AS_NUMBER, AS_UNKNOWN, CUT, STOP_WORD
from setrnn.tagging.html import write_set, write_table, write_text

if TYPE_CHECKING:
    from setrnn.tagging.explain.explain import Explanation
    from setrnn.tagging.explain.words import WeightedWord

N_WORDS, N_SETS = 5, 5  # in a notebook


def describe_reading(found: Explanation) -> Iterator[str]:
    """Describe in sentences how much of the text the model read, and how."""
    if found.note:
        yield found.note
    if found.read:
        n_read = len(found.read) - len(found.features)
        yield f"The model read {_count(n_read, 'word')} of {len(found.words):,}."
    else:
        yield "There is nothing to read: the model would predict this for any empty text."
    subwords = found.reads_subwords
    if n := len(found.with_fate(STOP_WORD)):
        yield f"{_count(n, 'stop word')} {'read, but not listed' if subwords else 'left out'}."
    if n := len(found.with_fate(CUT)):
        kind = (
            "parts of words (text.max_tokens and text.windows)."
            if subwords
            else "that are not stop words (text.max_words and text.windows)."
        )
        yield (
            f"{_count(n, 'word')} cut off at the end: this model reads the first "
            f"{found.max_words:,} {kind}"
        )
    for fate, what, how in (
        (AS_UNKNOWN, "word", "unknown to the model"),
        (AS_NUMBER, "number", "read as 'a number'"),
    ):
        if names := [word.text for word in found.with_fate(fate)]:
            yield f"{_count(len(names), what)} {how}: {_join_names(names)}."
    if found.features:
        yield f"{_count(len(found.features), 'feature')} read after the words."
    if found.unknown_features:
        why = "too many" if subwords else "unknown to the model"
        left_out = _join_names(found.unknown_features)
        yield f"{_count(len(found.unknown_features), 'feature')} left out, {why}: {left_out}."
    if subwords and found.steps:
        share = 1 - fsum(sum(step.weights) for step in found.steps) / len(found.steps)
        yield (
            f"{max(share, 0):.0%} of the attention of the steps is on punctuation and special "
            "tokens, which are not shown."
        )


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _join_names(names: Sequence[str], most: int = 8) -> str:
    """Join the first few names, each once."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - most:,} more" if len(distinct) > most else ""
    return ", ".join(distinct[:most]) + more


def write_explanation(found: Explanation) -> str:
    """Write an explanation as HTML: the set, the words of each label, the most probable sets."""
    by = "given" if found.is_given else f"rule {write_text(str(found.rule))}"
    best = found.predicted
    text = (
        f"<div>{write_text(found.method)}, {by}: {write_set(best.labels)} "
        f"p {'=' if best.is_exact else '≥'} {best.probability:.3f}</div>"
    )
    labels = [
        [
            write_text(each.label) + ("" if each.is_in_set else " <i>(left out)</i>"),
            f"{each.probability:.3f}",
            _write_words(found.words_for(each, N_WORDS)),
            _write_words(found.words_against(each, N_WORDS)),
        ]
        for each in found.label_words
    ]
    sets = [
        [f"{'' if each.is_exact else '≥ '}{each.probability:.3f}", write_set(each.labels)]
        for each in found.sets[:N_SETS]
    ]
    steps = [
        [
            write_text(each.label or "STOP"),
            f"{each.probability:.3f}",
            _write_words(found.attended(each, N_WORDS)),
        ]
        for each in found.steps
    ]
    for columns, rows in (
        (["label", "p", "words for it", "words against it"], labels),
        (["p", "set"], sets),
        (["step", "p", "words attended to"], steps),
    ):
        text += write_table(columns, rows) if rows else ""
    notes = "".join(f"<li>{write_text(each)}</li>" for each in found.reading_notes())
    return f"{text}<ul>{notes}</ul>"


def _write_words(words: Sequence[WeightedWord]) -> str:
    return " · ".join(f"{write_text(each.text)} {each.weight:.2f}" for each in words)
