"""The explanation of one prediction: sequences, sets, and the words behind steps and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from typing import Any

import numpy as np

from setrnn.data.reading import AS_NUMBER, AS_UNKNOWN, CUT, STOP_WORD, Word
from setrnn.systems.candidates import ScoredSet
from setrnn.tagging.html import write_explanation

WORD, PAIR, FEATURE, LABEL = "word", "pair", "feature", "label"  # kinds of what has a weight


@dataclass(frozen=True)
class FoundSequence(ScoredSet):
    """A label sequence with its probability and the name of its set."""

    set_name: str


@dataclass(frozen=True)
class NamedSet(ScoredSet):
    """A label set with its probability, the sum over the orders that the search found."""

    name: str  # A is the predicted or given set, B the most probable other set
    is_exact: bool  # whether all orders were summed; if not, the sum is a lower bound


@dataclass(frozen=True)
class Step:
    """One step of the best order of the explained set."""

    label: str | None  # None at STOP
    probability: float  # given the text and the labels before
    # The attention on each word and feature read. The sum is 1, or less if a transformer attends to
    # punctuation and special tokens.
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Term:
    """A part of the log-odds of a label in a classical system: a coefficient times a value."""

    text: str
    kind: str  # WORD, PAIR of neighbouring words, FEATURE, or LABEL: an earlier one of a chain
    n_times: int  # how often it was read
    value: float  # tf-idf; 1 for a label
    coefficient: float
    contribution: float  # coefficient * value


@dataclass(frozen=True)
class LinearScore:
    """The log-odds of a label in a classical system: the bias and the sum of the terms.

    A chain (pcc) also reads the labels of the explained set that come before this one.
    """

    total: float
    bias: float
    terms: tuple[Term, ...]  # whose coefficients are not 0


@dataclass(frozen=True)
class LabelWords:
    """How much each word speaks for a label of the explained set, or for one that was left out.

    Of a network, this is its label evidence: what a word adds to the score of the label by itself,
    at every step. Of a classical system, it is what a word adds to the log-odds of the label, and
    what a pair of words adds is divided between the two.
    """

    label: str
    probability: float  # p(label | text)
    is_in_set: bool
    weights: tuple[float, ...]  # of each word and feature read; negative: it speaks against
    elsewhere: float  # what punctuation and special tokens add, if a transformer reads them
    score: LinearScore | None = None  # of a classical system: all that its log-odds are made of


@dataclass(frozen=True)
class WeightedWord:
    """A word or feature, with its share of the attention or its weight for a label.

    Of a classical system, it may also be a pair of words or an earlier label of a chain.
    """

    text: str
    weight: float
    n_times: int  # how often it was read
    is_unknown: bool
    kind: str = WORD  # or PAIR, FEATURE, LABEL

    @property
    def is_feature(self) -> bool:
        """Whether it is a feature of the document."""
        return self.kind == FEATURE

    @property
    def remark(self) -> str:
        """What it is, unless it is a known word."""
        return "unknown" if self.is_unknown else "" if self.kind == WORD else self.kind


@dataclass(frozen=True)
class Explanation:
    """How a system tags one text.

    A system that does not emit labels one by one has no sequences and no steps. A network without
    label evidence (`model.evidence`) has no words per label.

    Example:
        >>> from setrnn import SetRNNClassifier
        >>> small = {"vectors.dimensions": 8, "vectors.source": "none", "training.epochs": 20}
        >>> texts, label_sets = ["red apple", "red car"] * 8, [{"fruit", "red"}, {"red"}] * 8
        >>> tagger = SetRNNClassifier("set-rnn", settings=small).fit(texts, label_sets).tagger_
        >>> explanation = tagger.explain("The red apple")
        >>> [(word.text, word.fate) for word in explanation.words]
        [('The', 'stop word'), ('red', 'known'), ('apple', 'known')]
        >>> explanation.predicted.labels == tagger.tag(["The red apple"])[0].labels
        True
        >>> explanation.steps[-1].label is None  # STOP
        True
        >>> sorted(each.label for each in explanation.label_words)
        ['fruit', 'red']
    """

    method: str
    rule: str | None  # how the predicted set was chosen; None if the set was given
    text: str
    words: tuple[Word, ...]
    features: tuple[str, ...]  # those that were read, after the words
    unknown_features: tuple[str, ...]  # those that were not read
    max_words: int
    beam_width: int
    sequences: tuple[FoundSequence, ...]  # in descending order of probability
    # The predicted set, then the others in descending order of probability; or the given set.
    sets: tuple[NamedSet, ...]
    steps: tuple[Step, ...]  # the last is STOP
    # Of the labels of the explained set, then of the most probable others.
    label_words: tuple[LabelWords, ...] = ()
    reads_subwords: bool = False
    member: str = ""  # of a mixture: the method of the member that words and sets are of
    note: str = ""  # of a mixture: which member that is

    def _repr_html_(self) -> str:
        return write_explanation(self)

    @property
    def predicted(self) -> NamedSet:
        """The set that is explained: the predicted or the given one."""
        return self.sets[0]

    @property
    def is_given(self) -> bool:
        """Whether the set was given; then the sequences are its orders only."""
        return self.rule is None

    @property
    def has_scores(self) -> bool:
        """Whether the scores of labels are known as sums: those of classical systems are."""
        return any(each.score is not None for each in self.label_words)

    @property
    def order(self) -> tuple[str, ...]:
        """The best order of the explained set."""
        return tuple(step.label for step in self.steps if step.label is not None)

    @property
    def order_probability(self) -> float:
        """The probability of the best order: the product over its steps."""
        return float(np.prod([step.probability for step in self.steps]))

    @property
    def read(self) -> tuple[str, ...]:
        """What the model read, as written in the text: the words, then the features."""
        return (*(word.text for word in self.words if word.place is not None), *self.features)

    def with_fate(self, fate: str) -> list[Word]:
        """Return the words with a given fate: see `Word.fate`."""
        return [word for word in self.words if word.fate == fate]

    def reading_notes(self) -> list[str]:
        """Describe in sentences how much of the text the model read, and how."""
        n_read = len(self.read) - len(self.features)
        notes = [self.note] if self.note else []
        if self.read:
            notes.append(f"The model read {_count(n_read, 'word')} of {len(self.words):,}.")
        else:
            notes.append(
                "There is nothing to read: the model would predict this for any empty text."
            )
        if stop_words := self.with_fate(STOP_WORD):
            what = "read, but not listed" if self.reads_subwords else "left out"
            notes.append(f"{_count(len(stop_words), 'stop word')} {what}.")
        if cut := self.with_fate(CUT):
            kind = (
                "parts of words (text.max_tokens and text.windows)."
                if self.reads_subwords
                else "that are not stop words (text.max_words and text.windows)."
            )
            notes.append(
                f"{_count(len(cut), 'word')} cut off at the end: this model reads the first "
                f"{self.max_words:,} {kind}"
            )
        if unknown := self.with_fate(AS_UNKNOWN):
            alike = ", all read as the same word" if len(unknown) > 1 else ""
            notes.append(
                f"{_count(len(unknown), 'word')} unknown to the model{alike}: "
                f"{_join_names([word.text for word in unknown])}."
            )
        if numbers := self.with_fate(AS_NUMBER):
            notes.append(
                f"{_count(len(numbers), 'number')} read as 'a number': "
                f"{_join_names([word.text for word in numbers])}."
            )
        if self.features:
            notes.append(f"{_count(len(self.features), 'feature')} read after the words.")
        if self.unknown_features:
            why = "too many" if self.reads_subwords else "unknown to the model"
            notes.append(
                f"{_count(len(self.unknown_features), 'feature')} left out, {why}: "
                f"{_join_names(self.unknown_features)}."
            )
        if self.reads_subwords and self.steps:
            share = 1 - fsum(sum(step.weights) for step in self.steps) / len(self.steps)
            notes.append(
                f"{max(share, 0):.0%} of the attention of the steps is on punctuation and special "
                "tokens, which are not shown."
            )
        return notes

    def attended(self, step: Step, top: int) -> list[WeightedWord]:
        """Return the words with the most attention; the weights of a repeated word are summed."""
        return self._heaviest(step.weights)[:top]

    def words_for(self, label: LabelWords, top: int) -> list[WeightedWord]:
        """Return the words that speak for a label, the strongest first.

        Of a classical system, also word pairs and, in a chain, earlier labels.
        """
        return [word for word in self._weigh(label) if word.weight > 0][:top]

    def words_against(self, label: LabelWords, top: int) -> list[WeightedWord]:
        """Return the words that speak against a label, the strongest first."""
        return [word for word in self._weigh(label)[::-1] if word.weight < 0][:top]

    def _weigh(self, label: LabelWords) -> list[WeightedWord]:
        """List what speaks for a label, then what speaks against it."""
        if label.score is None:
            return self._heaviest(label.weights)
        terms = sorted(label.score.terms, key=lambda term: -term.contribution)
        return [
            WeightedWord(term.text, term.contribution, term.n_times, False, term.kind)
            for term in terms
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain JSON values."""
        return {**asdict(self), "notes": self.reading_notes()}

    def _heaviest(self, weights: Sequence[float]) -> list[WeightedWord]:
        """List the words by their weights, without stop words."""
        skipped = {word.place for word in self.words if word.fate == STOP_WORD}
        unknown = {word.place for word in self.words if word.fate == AS_UNKNOWN}
        n_words = len(self.read) - len(self.features)
        found: dict[tuple[str, bool], WeightedWord] = {}
        for place, (text, weight) in enumerate(zip(self.read, weights, strict=True)):
            if place in skipped:
                continue
            key = (text.lower(), place >= n_words)
            kind = FEATURE if key[1] else WORD
            before = found.get(key, WeightedWord(text, 0.0, 0, place in unknown, kind))
            found[key] = replace(before, weight=before.weight + weight, n_times=before.n_times + 1)
        return sorted(found.values(), key=lambda word: -word.weight)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _join_names(names: Sequence[str], most: int = 8) -> str:
    """Join the first few names, each once."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - most:,} more" if len(distinct) > most else ""
    return ", ".join(distinct[:most]) + more
