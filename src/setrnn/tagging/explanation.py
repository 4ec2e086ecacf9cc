"""How a system tags one text: its sequences, sets and steps, and what it read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from typing import Any

import numpy as np

from setrnn.data.text.alignment import AS_NUMBER, AS_UNKNOWN, CUT, STOP_WORD, Word
from setrnn.errors import count_of, list_some
from setrnn.systems.candidates import ScoredSet

N_NAMES_SHOWN = 8  # words or features in a note
_CHOSEN_BY = {
    None: "given, not predicted",
    "set": "the most probable set",
    "sequence": "the set of the best sequence",
}


@dataclass(frozen=True)
class LabelWords:
    """How much each word speaks for a label of the explained set, or for one that was left out.

    Of a network, this is its label evidence: what a word adds to the score of the label by itself,
    at every step. Of a classical system, it is what a word adds to the log-odds of the label, and
    what a pair of words adds is divided between the two. Of a mixture, it is the weighted sum over
    its members.
    """

    label: str
    probability: float  # p(label | text)
    is_in_set: bool
    weights: tuple[float, ...]  # of each word and feature read; negative: it speaks against
    elsewhere: float  # what punctuation and special tokens add, if a transformer reads them


@dataclass(frozen=True)
class WeightedWord:
    """A word or feature, with its share of the attention or its weight for a label."""

    text: str
    weight: float
    n_times: int  # how often it was read
    remark: str  # "unknown" or "feature"; "" for a known word


@dataclass(frozen=True)
class FoundSequence(ScoredSet):
    """A label sequence with its probability and the name of its set."""

    set: str


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
    member: str = ""  # of a mixture: the member that the sequences and the steps are of
    note: str = ""  # of a mixture: the weight of each member, and what it shows
    # Why a label is not in the predicted set, if it is more probable than one of the set.
    left_out: str = ""

    @property
    def predicted(self) -> NamedSet:
        """The set that is explained: the predicted or the given one."""
        return self.sets[0]

    @property
    def is_given(self) -> bool:
        """Whether the set was given; then the sequences are its orders only."""
        return self.rule is None

    @property
    def chosen_by(self) -> str:
        """How the explained set was chosen, in words."""
        return _CHOSEN_BY.get(self.rule, f"the best set by rule {self.rule}")

    @property
    def by_member(self) -> str:
        """Of a mixture, name the member that the sequences and the steps are of, in words."""
        return f", by its member {self.member}" if self.member else ""

    @property
    def has_bounds(self) -> bool:
        """Whether the probability of some set is a lower bound."""
        return not all(each.is_exact for each in self.sets)

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
        subwords, n_read = self.reads_subwords, len(self.read) - len(self.features)
        notes = [self.note] if self.note else []
        if self.read:
            notes.append(f"The model read {count_of(n_read, 'word')} of {len(self.words):,}.")
        else:
            notes.append("There is nothing to read: any empty text has the same prediction.")
        if n := len(self.with_fate(STOP_WORD)):
            how = "read, but not listed" if subwords else "left out"
            notes.append(f"{count_of(n, 'stop word')} {how}.")
        if n := len(self.with_fate(CUT)):
            of = "that are not stop words (text.max_words and text.windows)"
            if subwords:
                of = "parts of words (text.max_tokens and text.windows)"
            notes.append(
                f"{count_of(n, 'word')} cut off at the end: this model reads the first "
                f"{self.max_words:,} {of}."
            )
        for fate, what, how in (
            (AS_UNKNOWN, "word", "unknown to the model"),
            (AS_NUMBER, "number", "read as 'a number'"),
        ):
            if names := [word.text for word in self.with_fate(fate)]:
                notes.append(f"{count_of(len(names), what)} {how}: {_list_once(names)}.")
        if self.features:
            notes.append(f"{count_of(len(self.features), 'feature')} read after the words.")
        if names := list(self.unknown_features):
            why = "too many" if subwords else "unknown to the model"
            notes.append(f"{count_of(len(names), 'feature')} left out, {why}: {_list_once(names)}.")
        if subwords and self.steps:
            share = 1 - fsum(sum(step.weights) for step in self.steps) / len(self.steps)
            notes.append(
                f"{max(share, 0):.0%} of the attention of the steps is on punctuation and special "
                "tokens, which are not shown."
            )
        return notes

    def words_for(self, row: LabelWords | Step, top: int) -> list[WeightedWord]:
        """Return the words that speak for a label, or that a step attends to, the strongest first.

        The weights of a repeated word are summed.
        """
        return [word for word in self._weigh(row) if word.weight > 0][:top]

    def words_against(self, row: LabelWords | Step, top: int) -> list[WeightedWord]:
        """Return the words that speak against a label, the strongest first."""
        return [word for word in self._weigh(row)[::-1] if word.weight < 0][:top]

    def strongest(
        self, row: LabelWords | Step, n_for: int, n_against: int, least: float = 0.0
    ) -> list[WeightedWord]:
        """Return the words for a label or a step, then those against it.

        Words below `least` of the strongest word are left out.
        """
        words = [*self.words_for(row, n_for), *self.words_against(row, n_against)]
        limit = least * max((abs(word.weight) for word in words), default=0.0)
        return [word for word in words if abs(word.weight) >= limit]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain JSON values."""
        return {**asdict(self), "notes": self.reading_notes()}

    def _weigh(self, row: LabelWords | Step) -> list[WeightedWord]:
        """List the words by their weights, without stop words."""
        skipped = {word.place for word in self.words if word.fate == STOP_WORD}
        unknown = {word.place for word in self.words if word.fate == AS_UNKNOWN}
        n_words = len(self.read) - len(self.features)
        found_words: dict[tuple[str, bool], WeightedWord] = {}
        for place, (text, weight) in enumerate(zip(self.read, row.weights, strict=True)):
            if place not in skipped:
                is_feature = place >= n_words
                remark = "feature" if is_feature else "unknown" if place in unknown else ""
                key = text.lower(), is_feature
                word = found_words.get(key, WeightedWord(text, 0.0, 0, remark))
                found_words[key] = replace(
                    word, weight=word.weight + weight, n_times=word.n_times + 1
                )
        return sorted(found_words.values(), key=lambda word: -word.weight)


def _list_once(names: Sequence[str]) -> str:
    """List the first few names, each once."""
    return list_some(list(dict.fromkeys(names)), N_NAMES_SHOWN)
