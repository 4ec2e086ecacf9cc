"""Explain how a recurrent system tags a text: the paper's Table 4 and Figure 3 for one text."""

# T words and features read, S labels of the explained set, K sequences, G sets

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, factorial, fsum
from string import ascii_uppercase
from typing import TYPE_CHECKING

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
    Word,
    break_runs,
    read_of,
    whole_characters,
    words_of,
    words_read,
)
from setrnn.errors import ConfigError, DataError
from setrnn.model.interfaces import Encoding
from setrnn.search import Sequences, most_probable_sets, search_orders
from setrnn.systems.candidates import ScoredSet
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.systems.rules import find_rule
from setrnn.tagging.prediction import problem_with_known

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger

Order = tuple[list[int], float]  # the ids of a label sequence, and its probability


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
    weights: tuple[float, ...]  # the attention on each word and feature read; the sum is 1


@dataclass(frozen=True)
class Explanation:
    """How a recurrent system tags one text.

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
    """

    method: str
    rule: str | None  # how the predicted set was chosen; None if the set was given
    text: str
    words: tuple[Word, ...]
    features: tuple[str, ...]  # those that were read, after the words
    unknown_features: tuple[str, ...]  # those that the model does not know and ignores
    max_words: int
    beam_width: int
    sequences: tuple[FoundSequence, ...]  # in descending order of probability
    # The predicted set, then the others in descending order of probability; or the given set.
    sets: tuple[NamedSet, ...]
    steps: tuple[Step, ...]  # the last is STOP
    note: str = ""  # of a mixture: which member is explained

    @property
    def predicted(self) -> NamedSet:
        """The set that is explained: the predicted or the given one."""
        return self.sets[0]

    @property
    def is_given(self) -> bool:
        """Whether the set was given; then the sequences are its orders only."""
        return self.rule is None

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
        if dropped := self.with_fate(STOP_WORD):
            notes.append(f"{_count(len(dropped), 'stop word')} left out.")
        if cut := self.with_fate(CUT):
            notes.append(
                f"{_count(len(cut), 'word')} cut off at the end: this model reads the first "
                f"{self.max_words:,} that are not stop words (text.max_words)."
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
            notes.append(
                f"{_count(len(self.unknown_features), 'feature')} left out, unknown to the model: "
                f"{_join_names(self.unknown_features)}."
            )
        return notes

    def attended(self, step: Step, top: int) -> list[AttendedWord]:
        """Return the words with the most attention; the weights of a repeated word are summed."""
        unknown = {word.place for word in self.words if word.fate == AS_UNKNOWN}
        n_words = len(self.read) - len(self.features)
        found: dict[tuple[str, bool], AttendedWord] = {}
        for place, (text, weight) in enumerate(zip(self.read, step.weights, strict=True)):
            key = (text.lower(), place >= n_words)
            before = found.get(key, AttendedWord(text, 0.0, 0, place in unknown, key[1]))
            found[key] = replace(before, weight=before.weight + weight, n_times=before.n_times + 1)
        return sorted(found.values(), key=lambda word: -word.weight)[:top]


@dataclass(frozen=True)
class AttendedWord:
    """A word or feature, and its share of the attention of a step."""

    text: str
    weight: float
    n_times: int  # how often it was read
    is_unknown: bool
    is_feature: bool


def given_set(
    labels: LabelVocabulary, names: Collection[str], max_labels: int | None = None
) -> list[int]:
    """Return the ids of a set to explain, ascending; raise DataError if it is not possible."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise DataError("The labels to explain must be a list of strings. Write ['...', '...'].")
    problem = problem_with_known(labels, names, (), max_labels)
    if problem is not None:
        raise DataError(problem[0].upper() + problem[1:])
    return sorted({labels.index[name] for name in names})


def why_not_explained(tagger: Tagger) -> str | None:
    """Return why a model cannot be explained, and what to do; None if it can."""
    if tagger.members:
        if _rank_explainable_members(tagger):
            return None
        return (
            "A mixture is explained by one of its members, and none of them can be: mix a "
            "recurrent system over words too, such as set-rnn."
        )
    if not tagger.system.emits_sequences:
        return (
            f"Only a system that emits labels one by one can be explained, and '{tagger.method}' "
            "does not. Train a recurrent system such as set-rnn."
        )
    if tagger.config.encoder.is_pretrained:
        return (
            "An explanation shows words, and a transformer reads parts of words. Train with "
            "--set encoder.name=gru to explain."
        )
    return None


def _rank_explainable_members(mixture: Tagger) -> list[tuple[Tagger, float]]:
    """Return the members that can be explained with their weights, the largest first."""
    assert isinstance(mixture.system, MixtureSystem)
    weights = mixture.system.for_rule("set").weights.current.tolist()
    ranked = sorted(zip(mixture.members, weights, strict=True), key=lambda each: -each[1])
    return [(member, weight) for member, weight in ranked if why_not_explained(member) is None]


def choose_explained_rule(
    tagger: Tagger, rule: str | None, labels: Collection[str] | None = None
) -> str | None:
    """Return the rule to explain by, the model's own if not given; None for given labels."""
    problem = why_not_explained(tagger)
    if problem is not None:
        raise ConfigError(problem)
    if labels is not None:
        if rule is not None:
            raise ConfigError(
                "A given set is not chosen by a rule. Leave out the rule, or the labels."
            )
        return None
    chosen = tagger.rule_or_own(rule)
    if not find_rule(chosen).needs_best_only:
        raise ConfigError(f"Rule '{chosen}' cannot be explained. Use rule 'set' or 'sequence'.")
    return chosen


def explain_text(
    tagger: Tagger,
    text: str,
    features: Sequence[str] = (),
    top: int = 12,
    rule: str | None = None,
    labels: Collection[str] | None = None,
) -> Explanation:
    """Explain the predicted set of a text, or the given labels: see `Tagger.explain`."""
    if not isinstance(text, str):
        raise DataError(f"text must be one string, got {type(text).__name__}.")
    if isinstance(features, str):
        raise DataError("features must be a list of strings, got one string.")
    chosen = choose_explained_rule(tagger, rule, labels)
    given = None if labels is None else given_set(tagger.labels, labels, tagger.max_labels)
    text, *features = (break_runs(whole_characters(each)) for each in (text, *features))
    if tagger.members:
        return _explain_mixture(tagger, text, features, top, chosen, labels)
    tokens = tagger.encoder.encode([text], [features])
    words = tuple(words_of(tagger.encoder, text))
    return _explain(tagger, tokens, top, chosen, given, text, words, features)


def _explain_mixture(
    mixture: Tagger,
    text: str,
    features: Sequence[str],
    top: int,
    rule: str | None,
    labels: Collection[str] | None,
) -> Explanation:
    """Explain a text by the member with the most weight among those that can be explained."""
    member, weight = _rank_explainable_members(mixture)[0]
    found = explain_text(member, text, features, top, rule, labels)
    note = (
        f"This is how {member.method} tags the text, a member of the mixture with weight "
        f"{weight:.2f}."
    )
    if rule is not None:
        predicted = mixture.tag([text], rule, features=[features])[0].labels
        if set(predicted) != set(found.predicted.labels):
            note += f" The mixture predicts {{{', '.join(predicted)}}}."
    return replace(found, note=note)


def explain_tokens(tagger: Tagger, tokens: Ragged, top: int = 12) -> Explanation:
    """Explain by rule "set" a document of which only the token ids are known, in one row.

    Its text is what the model read, without stop words.
    """
    read = read_of(tagger.encoder, tokens).words
    words = tuple(words_read(read))
    return _explain(tagger, tokens, top, "set", None, " ".join(read), words)


@torch.inference_mode()
def _explain(
    tagger: Tagger,
    tokens: Ragged,
    top: int,
    rule: str | None,
    given: Sequence[int] | None,
    text: str,
    words: tuple[Word, ...],
    features: Sequence[str] = (),
) -> Explanation:
    """Search as prediction does, and follow the best order of the predicted or given set."""
    system, labels = tagger.system.sequences, tagger.labels
    assert system is not None, "checked by choose_explained_rule"
    system.network.eval()
    batch = make_batch(tokens, None, np.zeros(1, dtype=np.int64)).to(system.device)
    encoding = system.network.encode(batch)
    if given is None:
        found, probs = _search(system, encoding, rule)
        orders = _orders(system, encoding, sorted(next(iter(probs))))
    else:
        found = orders = _orders(system, encoding, given)
        probs = {frozenset(given): min(fsum(prob for _, prob in orders), 1.0)}
    width = system.config.search.beam_width
    names = {each: _letters(rank) for rank, each in enumerate(probs)}
    sets = [
        NamedSet(_names(labels, sorted(each)), prob, names[each], factorial(len(each)) <= width)
        for each, prob in probs.items()
    ]
    sequences = [
        FoundSequence(_names(labels, order), prob, names[frozenset(order)])
        for order, prob in found[:top]
    ]
    shown = {*(each.name for each in sets[:top]), *(each.set_name for each in sequences)}
    read_features = read_of(tagger.encoder, tokens).features
    return Explanation(
        method=tagger.method,
        rule=rule,
        text=text,
        words=words,
        features=read_features,
        unknown_features=tuple(name for name in features if name not in read_features),
        max_words=tagger.encoder.max_words,
        beam_width=width,
        sequences=tuple(sequences),
        sets=tuple(each for each in sets if each.name in shown),
        steps=tuple(_steps(system, encoding, labels, orders[0][0], len(tokens[0]))),
    )


def _search(
    system: RecurrentSystem, encoding: Encoding, rule: str | None
) -> tuple[list[Order], dict[frozenset[int], float]]:
    """Run Algorithm 3; return its sequences, and their sets with p, the predicted set first."""
    width, most = system.config.search.beam_width, system.config.model.max_labels
    found = most_probable_sets(system.network.decoder, encoding, width, most)
    probs = {
        frozenset(_ids(row)): min(float(log_prob.exp()), 1.0)
        for row, log_prob in zip(found.labels[0], found.log_probs[0], strict=True)
        if log_prob > -torch.inf
    }
    assert found.sequences is not None
    orders = _list_orders(found.sequences)
    predicted = frozenset(orders[0][0]) if rule == "sequence" else next(iter(probs))
    return orders, {predicted: probs[predicted]} | probs


def _orders(system: RecurrentSystem, encoding: Encoding, label_set: Sequence[int]) -> list[Order]:
    """Find the best orders of a set and their probabilities: Algorithm 1 with ALL = 1."""
    sets = torch.tensor(label_set, dtype=torch.long, device=system.device).view(1, 1, -1)
    width = system.config.search.beam_width
    return _list_orders(search_orders(system.network.decoder, encoding, sets, width))


def _list_orders(found: Sequences) -> list[Order]:
    """Return the sequences of one search for one document, with their probabilities."""
    return [
        (_ids(row), min(exp(log_prob), 1.0))
        for row, log_prob in zip(found.labels[0, 0], found.log_probs[0, 0].tolist(), strict=True)
        if log_prob > -torch.inf
    ]


def _steps(
    system: RecurrentSystem,
    encoding: Encoding,
    labels: LabelVocabulary,
    order: Sequence[int],
    n_read: int,
) -> Iterator[Step]:
    """Follow an order again; yield the probability and the attention of each step."""
    decoder = system.network.decoder
    stop = decoder.n_labels
    emitted = torch.tensor(order, dtype=torch.long, device=system.device).view(1, 1, -1)
    weights = decoder.attend(encoding, emitted)[0, 0, :, :n_read].float().cpu()
    state = decoder.start(encoding)
    previous = emitted.new_full((1, 1), stop)
    for step, label in enumerate([*order, stop]):
        log_probs, state = decoder.step(encoding, state, previous)
        name = None if label == stop else labels.names[label]
        prob = min(float(log_probs[0, 0, label].exp()), 1.0)
        yield Step(name, prob, tuple(weights[step].tolist()))
        previous = emitted.new_full((1, 1), label)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _join_names(names: Sequence[str], most: int = 8) -> str:
    """Join the first few names, each once."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - most:,} more" if len(distinct) > most else ""
    return ", ".join(distinct[:most]) + more


def _names(labels: LabelVocabulary, row: Sequence[int]) -> tuple[str, ...]:
    return tuple(labels.names[label] for label in row)


def _ids(row: Tensor) -> list[int]:
    return [label for label in row.tolist() if label >= 0]


def _letters(rank: int) -> str:
    """Return the name of a set by its rank: A, B ... Z, AA, AB ..."""
    name = ""
    while rank >= 0:
        name = ascii_uppercase[rank % 26] + name
        rank = rank // 26 - 1
    return name
