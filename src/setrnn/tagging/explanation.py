"""Why a recurrent system tags a text as it does: the paper's Table 4 and Figure 3 for one text."""

# T words and features read, S labels of the explained set, K sequences, G sets

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import exp, factorial, fsum
from string import ascii_uppercase
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setrnn.data.batches import make_batch
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.data.tokenizing import (
    AS_NUMBER,
    AS_UNKNOWN,
    CUT,
    STOP_WORD,
    TextEncoder,
    Word,
    read_of,
    whole_characters,
    words_of,
    words_read,
)
from setrnn.errors import DataError
from setrnn.model.interfaces import Encoding
from setrnn.search import Sequences, most_probable_sets, search_orders
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.tagging.completion import problem_with_known


@dataclass(frozen=True)
class FoundSequence:
    """A label sequence, its probability, and the name of its set."""

    labels: tuple[str, ...]
    probability: float
    set_name: str


@dataclass(frozen=True)
class FoundSet:
    """A label set and its probability: the sum of its orders that the search found."""

    name: str  # A is the predicted or the given one, B the most probable other
    labels: tuple[str, ...]
    probability: float
    is_exact: bool  # all of its orders were summed; otherwise the sum is a lower bound


@dataclass(frozen=True)
class Step:
    """One step of the best order of the explained set."""

    label: str | None  # None at STOP
    probability: float  # given the text and the labels before
    weights: tuple[float, ...]  # the attention on each word and feature read; they sum to 1


@dataclass(frozen=True)
class Explanation:
    """What a recurrent system makes of one text."""

    method: str
    rule: str | None  # how the predicted set was chosen; None: it was given
    text: str
    words: tuple[Word, ...]
    features: tuple[str, ...]  # those read, behind the words
    unknown_features: tuple[str, ...]  # those the model never saw; they were left out
    max_words: int
    beam_width: int
    sequences: tuple[FoundSequence, ...]  # by falling probability
    sets: tuple[FoundSet, ...]  # the predicted one, then by falling probability; or the given one
    steps: tuple[Step, ...]  # STOP's is the last

    @property
    def predicted(self) -> FoundSet:
        """The set that is explained: the predicted one, or the one that was given."""
        return self.sets[0]

    @property
    def is_given(self) -> bool:
        """Whether the set was given, not predicted: the sequences are then its orders only."""
        return self.rule is None

    @property
    def order(self) -> tuple[str, ...]:
        """The best order of the explained set."""
        return tuple(step.label for step in self.steps if step.label is not None)

    @property
    def order_probability(self) -> float:
        """The probability of that order: the product of its steps."""
        return float(np.prod([step.probability for step in self.steps]))

    @property
    def read(self) -> tuple[str, ...]:
        """What the model read, as it is written: the words, then the features."""
        return (*(word.text for word in self.words if word.place is not None), *self.features)

    def with_fate(self, fate: str) -> list[Word]:
        """List the words that something became of: see `Word.fate`."""
        return [word for word in self.words if word.fate == fate]

    def reading_notes(self) -> list[str]:
        """Say in sentences how much of the text the model read, and how."""
        n_read = len(self.read) - len(self.features)
        notes = [f"The model read {_count(n_read, 'word')} of {len(self.words):,}."]
        if not self.read:
            notes = ["There is nothing to read: this is what the model expects of any text."]
        if dropped := self.with_fate(STOP_WORD):
            notes.append(f"{_count(len(dropped), 'stop word')} left out.")
        if cut := self.with_fate(CUT):
            notes.append(
                f"{_count(len(cut), 'word')} cut off at the end: this model reads the first "
                f"{self.max_words:,} that are no stop words (text.max_words)."
            )
        if unknown := self.with_fate(AS_UNKNOWN):
            alike = ", read as one and the same" if len(unknown) > 1 else ""
            notes.append(
                f"{_count(len(unknown), 'word')} unknown to the model{alike}: "
                f"{_listed([word.text for word in unknown])}."
            )
        if numbers := self.with_fate(AS_NUMBER):
            notes.append(
                f"{_count(len(numbers), 'number')} read as 'a number': "
                f"{_listed([word.text for word in numbers])}."
            )
        if self.features:
            notes.append(f"{_count(len(self.features), 'feature')} read after the words.")
        if self.unknown_features:
            notes.append(
                f"{_count(len(self.unknown_features), 'feature')} left out, unknown to the model: "
                f"{_listed(self.unknown_features)}."
            )
        return notes

    def attended(self, step: Step, top: int) -> list[AttendedWord]:
        """List the words a step attended to most; the weights of a repeated word are summed."""
        unknown = {word.place for word in self.words if word.fate == AS_UNKNOWN}
        n_words = len(self.read) - len(self.features)
        found: dict[tuple[str, bool], AttendedWord] = {}
        for place, (text, weight) in enumerate(zip(self.read, step.weights, strict=True)):
            key = (text.lower(), place >= n_words)
            before = found.get(key, AttendedWord(text, 0.0, 0, place in unknown, key[1]))
            found[key] = AttendedWord(
                before.text,
                before.weight + weight,
                before.n_times + 1,
                before.is_unknown,
                before.is_feature,
            )
        return sorted(found.values(), key=lambda word: -word.weight)[:top]


@dataclass(frozen=True)
class AttendedWord:
    """A word or feature, and the share of a step's attention it got."""

    text: str
    weight: float
    n_times: int  # how often it was read
    is_unknown: bool
    is_feature: bool


def given_set(
    labels: LabelVocabulary, names: Collection[str], max_labels: int | None = None
) -> list[int]:
    """Return the ids of a set to explain, ascending, or say why it cannot be."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise DataError("The labels to explain are a list of strings. Write ['...', '...'].")
    problem = problem_with_known(labels, names, (), max_labels)
    if problem is not None:
        raise DataError(problem[0].upper() + problem[1:])
    return sorted({labels.index[name] for name in names})


@torch.inference_mode()
def explain_text(
    system: RecurrentSystem,
    encoder: TextEncoder,
    labels: LabelVocabulary,
    text: str,
    features: Sequence[str] = (),
    top: int = 12,
    method: str = "",
    rule: str | None = "set",
    given: Sequence[int] | None = None,
) -> Explanation:
    """Search as prediction does, and look at what the decoder attends to.

    Args:
        system: the trained system.
        encoder: turns the text into word ids.
        labels: names the labels.
        text: the document.
        features: its features.
        top: how many sequences to list, and how many sets besides theirs; the beam width is the
            limit.
        method: the name of the system.
        rule: "set" predicts the most probable set, "sequence" that of the best sequence.
        given: the set to explain instead, as `given_set` returns it; no rule goes with it.
    """
    text, *features = (whole_characters(each) for each in (text, *features))
    tokens = encoder.encode([text], [features])
    read = read_of(encoder, tokens)
    return _explained(
        system,
        labels,
        tokens,
        top,
        method=method,
        rule=rule,
        given=given,
        text=text,
        words=tuple(words_of(encoder, text)),
        features=read.features,
        unknown_features=tuple(name for name in features if name not in read.features),
        max_words=encoder.max_words,
    )


@torch.inference_mode()
def explain_tokens(
    system: RecurrentSystem,
    encoder: TextEncoder,
    labels: LabelVocabulary,
    tokens: Ragged,
    top: int = 12,
    method: str = "",
    rule: str = "set",
) -> Explanation:
    """Explain a document of which only the token ids are left, in one row: a prepared one.

    Its text is then what the model read, without stop words.
    """
    read = read_of(encoder, tokens)
    return _explained(
        system,
        labels,
        tokens,
        top,
        method=method,
        rule=rule,
        text=" ".join(read.words),
        words=tuple(words_read(read.words)),
        features=read.features,
        unknown_features=(),
        max_words=encoder.max_words,
    )


def _explained(
    system: RecurrentSystem,
    labels: LabelVocabulary,
    tokens: Ragged,
    top: int,
    rule: str | None,
    given: Sequence[int] | None = None,
    **about: Any,  # noqa: ANN401 (the other fields of the explanation)
) -> Explanation:
    """Search, and go through the best order of the predicted set, or of the given one."""
    assert (rule is None) == (given is not None), "a given set is chosen by no rule"
    system.network.eval()
    batch = make_batch(tokens, None, np.zeros(1, dtype=np.int64)).to(system.device)
    encoding = system.network.encode(batch)
    if given is None:
        sequences, sets = _search(system, encoding, labels, rule)
        orders = _orders(system, encoding, [labels.index[name] for name in sets[0].labels])
    else:
        orders = _orders(system, encoding, given)
        sequences, sets = _as_one_set(system, labels, orders)
    sequences = sequences[:top]
    shown = {*(each.name for each in sets[:top]), *(each.set_name for each in sequences)}
    n_read = len(tokens[0])
    return Explanation(
        rule=rule,
        beam_width=system.config.search.beam_width,
        sequences=tuple(sequences),
        sets=tuple(each for each in sets if each.name in shown),
        steps=tuple(_steps(system, encoding, labels, orders[0][0], n_read)),
        **about,
    )


def _search(
    system: RecurrentSystem, encoding: Encoding, labels: LabelVocabulary, rule: str | None
) -> tuple[list[FoundSequence], list[FoundSet]]:
    """Run Algorithm 3: the sequences it finds, and their sets, the predicted one first."""
    width, most = system.config.search.beam_width, system.config.model.max_labels
    found = most_probable_sets(system.network.decoder, encoding, width, most)
    probs = {
        frozenset(_ids(row)): float(log_prob.exp())
        for row, log_prob in zip(found.labels[0], found.log_probs[0], strict=True)
        if log_prob > -torch.inf
    }
    assert found.sequences is not None
    orders = _listed_orders(found.sequences)
    predicted = frozenset(orders[0][0]) if rule == "sequence" else next(iter(probs))
    ranked = [predicted, *(each for each in probs if each != predicted)]
    names = {each: _letters(rank) for rank, each in enumerate(ranked)}
    sets = [
        FoundSet(
            names[each],
            tuple(labels.names[label] for label in sorted(each)),
            probs[each],
            factorial(len(each)) <= width,
        )
        for each in ranked
    ]
    sequences = [
        FoundSequence(tuple(labels.names[label] for label in row), prob, names[frozenset(row)])
        for row, prob in orders
    ]
    return sequences, sets


def _orders(
    system: RecurrentSystem, encoding: Encoding, label_set: Sequence[int]
) -> list[tuple[list[int], float]]:
    """Find the best orders of a set, and their probabilities, by Algorithm 1 with ALL = 1."""
    sets = torch.tensor(label_set, dtype=torch.long, device=system.device).view(1, 1, -1)
    width = system.config.search.beam_width
    return _listed_orders(search_orders(system.network.decoder, encoding, sets, width))


def _listed_orders(found: Sequences) -> list[tuple[list[int], float]]:
    """List the sequences of the one search of one document, and their probabilities."""
    return [
        (_ids(row), exp(log_prob))
        for row, log_prob in zip(found.labels[0, 0], found.log_probs[0, 0].tolist(), strict=True)
        if log_prob > -torch.inf
    ]


def _as_one_set(
    system: RecurrentSystem, labels: LabelVocabulary, orders: list[tuple[list[int], float]]
) -> tuple[list[FoundSequence], list[FoundSet]]:
    """Name the orders found for one set, and sum them."""
    name, n_labels = _letters(0), len(orders[0][0])
    found = FoundSet(
        name,
        tuple(labels.names[label] for label in sorted(orders[0][0])),
        fsum(prob for _, prob in orders),
        factorial(n_labels) <= system.config.search.beam_width,
    )
    return [
        FoundSequence(tuple(labels.names[label] for label in row), prob, name)
        for row, prob in orders
    ], [found]


def _steps(
    system: RecurrentSystem,
    encoding: Encoding,
    labels: LabelVocabulary,
    order: Sequence[int],
    n_read: int,
) -> Iterator[Step]:
    """Go through an order again, and look at each step's choice and attention."""
    decoder = system.network.decoder
    stop = decoder.n_labels
    emitted = torch.tensor(order, dtype=torch.long, device=system.device).view(1, 1, -1)
    weights = decoder.attend(encoding, emitted)[0, 0, :, :n_read].float().cpu()
    state = decoder.start(encoding)
    previous = emitted.new_full((1, 1), stop)
    for step, label in enumerate([*order, stop]):
        log_probs, state = decoder.step(encoding, state, previous)
        name = None if label == stop else labels.names[label]
        yield Step(name, float(log_probs[0, 0, label].exp()), tuple(weights[step].tolist()))
        previous = emitted.new_full((1, 1), label)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _listed(names: Sequence[str], most: int = 8) -> str:
    """Name the first few, each once."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - most:,} more" if len(distinct) > most else ""
    return ", ".join(distinct[:most]) + more


def _ids(row: Tensor) -> list[int]:
    return [label for label in row.tolist() if label >= 0]


def _letters(rank: int) -> str:
    """Name a set: A, B ... Z, AA, AB ..."""
    name = ""
    while rank >= 0:
        name = ascii_uppercase[rank % 26] + name
        rank = rank // 26 - 1
    return name
