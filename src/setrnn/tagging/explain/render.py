"""Show an explanation: sentences on what was read, rows of words, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from setrnn.data.text.alignment import AS_NUMBER, AS_UNKNOWN, CUT, STOP_WORD
from setrnn.tagging.html import write_set, write_table, write_text

if TYPE_CHECKING:
    from setrnn.tagging.explain.explain import Explanation
    from setrnn.tagging.explain.words import LinearScore, WeightedWord

N_WORDS, N_SETS = 5, 5  # in a notebook


@dataclass(frozen=True)
class WordsRow:
    """A label or a step of an explanation, and the words that matter most for it."""

    name: str  # the label, or STOP
    probability: float
    words: tuple[WeightedWord, ...]
    weights: tuple[float, ...]  # of all words and features
    is_left_out: bool = False
    score: LinearScore | None = None


def list_label_rows(
    found: Explanation, n_for: int, n_against: int, min_weight: float
) -> list[WordsRow]:
    """List the words for each label, then those against it.

    Words below `min_weight` of the strongest word of the label are left out.
    """
    rows = []
    for label in found.label_words:
        words = [*found.words_for(label, n_for), *found.words_against(label, n_against)]
        least = min_weight * max((abs(word.weight) for word in words), default=0.0)
        kept = tuple(word for word in words if abs(word.weight) >= least)
        left_out, prob = not label.is_in_set, label.probability
        rows.append(WordsRow(label.label, prob, kept, label.weights, left_out, label.score))
    return rows


def list_step_rows(found: Explanation, n_words: int, min_share: float) -> list[WordsRow]:
    """List the words with the most attention at each step."""
    return [
        WordsRow(
            "STOP" if step.label is None else step.label,
            step.probability,
            tuple(each for each in found.attended(step, n_words) if each.weight >= min_share),
            step.weights,
        )
        for step in found.steps
    ]


def describe_reading(found: Explanation) -> list[str]:
    """Describe in sentences how much of the text the model read, and how."""
    return [each for each in _describe_reading(found) if each]


def _describe_reading(found: Explanation) -> Iterator[str]:
    yield found.note
    if found.read:
        n_read = len(found.read) - len(found.features)
        yield f"The model read {_count(n_read, 'word')} of {len(found.words):,}."
    else:
        yield "There is nothing to read: the model would predict this for any empty text."
    fates = (STOP_WORD, CUT, AS_UNKNOWN, AS_NUMBER)
    stop_words, cut, unknown, numbers = (
        [word.text for word in found.with_fate(fate)] for fate in fates
    )
    if stop_words:
        what = "read, but not listed" if found.reads_subwords else "left out"
        yield f"{_count(len(stop_words), 'stop word')} {what}."
    if cut:
        kind = (
            "parts of words (text.max_tokens and text.windows)."
            if found.reads_subwords
            else "that are not stop words (text.max_words and text.windows)."
        )
        yield (
            f"{_count(len(cut), 'word')} cut off at the end: this model reads the first "
            f"{found.max_words:,} {kind}"
        )
    if unknown:
        alike = ", all read as the same word" if len(unknown) > 1 else ""
        yield f"{_count(len(unknown), 'word')} unknown to the model{alike}: {_join_names(unknown)}."
    if numbers:
        yield f"{_count(len(numbers), 'number')} read as 'a number': {_join_names(numbers)}."
    if found.features:
        yield f"{_count(len(found.features), 'feature')} read after the words."
    if found.unknown_features:
        why = "too many" if found.reads_subwords else "unknown to the model"
        names = _join_names(found.unknown_features)
        yield f"{_count(len(found.unknown_features), 'feature')} left out, {why}: {names}."
    if found.reads_subwords and found.steps:
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
    parts = [
        f"<div>{write_text(found.method)}, {by}: {write_set(best.labels)} "
        f"p {'=' if best.is_exact else '≥'} {best.probability:.3f}</div>"
    ]
    labels = [
        [
            write_text(each.name) + (" <i>(left out)</i>" if each.is_left_out else ""),
            f"{each.probability:.3f}",
            _write_words([word for word in each.words if word.weight > 0]),
            _write_words([word for word in each.words if word.weight < 0]),
        ]
        for each in list_label_rows(found, N_WORDS, N_WORDS, 0.0)
    ]
    sets = [
        [f"{'' if each.is_exact else '≥ '}{each.probability:.3f}", write_set(each.labels)]
        for each in found.sets[:N_SETS]
    ]
    steps = [
        [write_text(each.name), f"{each.probability:.3f}", _write_words(each.words)]
        for each in list_step_rows(found, N_WORDS, 0.0)
    ]
    for columns, rows in (
        (["label", "p", "words for it", "words against it"], labels),
        (["p", "set"], sets),
        (["step", "p", "words attended to"], steps),
    ):
        if rows:
            parts.append(write_table(columns, rows))
    notes = "".join(f"<li>{write_text(each)}</li>" for each in found.reading_notes())
    return "".join(parts) + f"<ul>{notes}</ul>"


def _write_words(words: Sequence[WeightedWord]) -> str:
    return " · ".join(f"{write_text(each.text)} {each.weight:.2f}" for each in words)
