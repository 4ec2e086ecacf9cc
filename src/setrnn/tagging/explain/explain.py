"""Explain how a network tags a text: the paper's Table 4 and Figure 3, and the words per label."""

# T tokens, R words and features read, S labels of the explained set, L labels

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, factorial, fsum
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from setrnn.data.batches import make_batch
from setrnn.data.example import KnownLabels
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.data.text.alignment import (
    AS_UNKNOWN,
    STOP_WORD,
    AlignedText,
    Word,
    read_text,
    read_tokens,
)
from setrnn.data.text.subwords import SubwordEncoder
from setrnn.data.text.words import break_runs, whole_characters
from setrnn.errors import ConfigError, DataError
from setrnn.model.interfaces import Encoding
from setrnn.search.beam_search import Sequences, search_orders
from setrnn.search.set_search import most_probable_sets
from setrnn.systems.candidates import Floats32, Ids, ScoredSet, to_probability
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.neural import NeuralSystem
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.systems.system import System
from setrnn.tagging.complete import problem_with_known
from setrnn.tagging.explain.reading import describe_reading
from setrnn.tagging.explain.words import (
    FEATURE,
    WORD,
    LabelWords,
    WeightedWord,
    has_label_words,
    list_label_words,
)

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger

Order = tuple[list[int], float]  # the ids of a label sequence, and its probability


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
    member: str = ""  # of a mixture: the method of the member that words and sets are of
    note: str = ""  # of a mixture: which member that is

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
        return list(describe_reading(self))

    def attended(self, step: Step, top: int) -> list[WeightedWord]:
        """Return the words with the most attention; the weights of a repeated word are summed."""
        return self._weigh(step)[:top]

    def words_for(self, row: LabelWords | Step, top: int) -> list[WeightedWord]:
        """Return the words that speak for a label or a step, the strongest first."""
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
        found_words: dict[tuple[str, str], WeightedWord] = {}
        for place, (text, weight) in enumerate(zip(self.read, row.weights, strict=True)):
            if place not in skipped:
                kind = WORD if place < n_words else FEATURE
                first = WeightedWord(text, 0.0, 0, place in unknown, kind)
                word = found_words.get((text.lower(), kind), first)
                found_words[text.lower(), kind] = replace(
                    word, weight=word.weight + weight, n_times=word.n_times + 1
                )
        return sorted(found_words.values(), key=lambda word: -word.weight)


def check_given_set(tagger: Tagger, names: Collection[str]) -> None:
    """Raise DataError if a set cannot be explained."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise DataError("The labels to explain must be a list of strings. Write ['...', '...'].")
    if (problem := problem_with_known(tagger, KnownLabels(tuple(names)))) is not None:
        raise DataError(problem[0].upper() + problem[1:])


def why_not_explained(tagger: Tagger) -> str | None:
    """Return why a model cannot be explained, and what to do; None if it can."""
    if tagger.members:
        if _rank_explainable_members(tagger):
            return None
        return (
            "A mixture is explained by one of its members, and none of them can be: mix a "
            "network such as set-rnn too."
        )
    system = tagger.system
    if system.emits_sequences or has_label_words(system):
        return None
    return (
        f"This '{tagger.method}' model was trained without label evidence, which shows its words. "
        "Train it with --set model.evidence=true."
    )


def _rank_explainable_members(mixture: Tagger, rule: str = "set") -> list[tuple[Tagger, float]]:
    """Return the members that can be explained with their weights by a rule, the largest first."""
    assert isinstance(mixture.system, MixtureSystem)
    weights = mixture.system.for_rule(rule).weights.current.tolist()
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
    return tagger.rule_or_own(rule)


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
    text, *features = (break_runs(whole_characters(each)) for each in (text, *features))
    if labels is None:
        (found,), marginals = tagger.tag_with_marginals([(text, features)], chosen)
        labels = found.labels
    else:
        check_given_set(tagger, labels)
        marginals = tagger.marginals([text], [features])
    member, weight = tagger, 1.0
    if tagger.members:
        # Of the members that can be explained and emit so many labels, that of most weight.
        ranked = _rank_explainable_members(tagger, chosen or "set")
        n_labels = len(set(labels))
        able = [each for each in ranked if n_labels <= (each[0].max_labels or n_labels)]
        member, weight = (able or ranked)[0]
    reading = read_text(member.encoder, text, features, member.config.text.language)
    own_ids = [tagger.labels.index[name] for name in member.labels.names]
    explained = _explain(member, reading, top, chosen, labels, marginals.probs[0, own_ids])
    unread = tuple(name for name in features if name not in reading.features)
    explained = replace(explained, text=text, unknown_features=unread)
    if member is tagger:
        return explained
    note = (
        f"The words, the sequences and the probabilities of sets are those of {member.method}, "
        f"the member with the most weight ({weight:.2f})."
    )
    return replace(explained, method=tagger.method, member=member.method, note=note)


def explain_tokens(tagger: Tagger, tokens: Ragged, top: int = 12) -> Explanation:
    """Explain by rule "set" a document of which only the token ids are known, in one row.

    Its text is what the model read, without stop words. There are no words per label.
    """
    (found,) = tagger.tag_tokens(tokens, "set")
    return _explain(tagger, read_tokens(tagger.encoder, tokens), top, "set", found.labels, None)


@torch.inference_mode()
def _explain(
    tagger: Tagger,
    reading: AlignedText,
    top: int,
    rule: str | None,
    explained: Collection[str],
    probs: Floats32 | None,
) -> Explanation:
    """Explain a set, predicted by a rule or given; `probs` are those of the labels, (L,)."""
    system, labels = tagger.system, tagger.labels
    label_set = sorted({labels.index[name] for name in explained})
    whole = frozenset(label_set)
    width: int | None = None  # of a search, which may miss orders of a set
    encoding: Encoding | None = None
    found: list[Order] = []
    steps: tuple[Step, ...] = ()
    if isinstance(system, NeuralSystem):
        system.network.eval()
        batch = make_batch(reading.tokens, None, np.zeros(1, dtype=np.int64)).to(system.device)
        encoding = system.network.encode(batch)
    if not isinstance(system, RecurrentSystem):
        set_probs = _list_sets(system, reading.tokens, label_set, 1 if rule is None else top)
    else:
        assert encoding is not None
        width = system.config.search.beam_width
        orders = _find_orders(system, encoding, label_set)
        found, set_probs = (orders, {}) if rule is None else _search(system, encoding)
        own = set_probs.pop(whole, min(fsum(prob for _, prob in orders), 1.0))
        set_probs = {whole: own, **set_probs}
        steps = tuple(_follow(system, encoding, reading, labels, orders[0][0]))
    sets = [
        NamedSet(
            _names(labels, sorted(each)),
            prob,
            _letters(rank),
            # A sum over orders is exact if the beam is as wide as they are many.
            is_exact=width is None or factorial(len(each)) <= width,
        )
        for rank, (each, prob) in enumerate(set_probs.items())
    ]
    names = {frozenset(each.labels): each.name for each in sets}
    sequences = [
        FoundSequence(order, prob, names[frozenset(order)])
        for order, prob in ((_names(labels, order), prob) for order, prob in found[:top])
    ]
    shown = {*(each.name for each in sets[:top]), *(each.set for each in sequences)}
    return Explanation(
        method=tagger.method,
        rule=rule,
        text=" ".join(word.text for word in reading.words),
        words=reading.words,
        features=reading.features,
        unknown_features=(),
        max_words=tagger.encoder.limit,
        beam_width=tagger.config.search.beam_width,
        sequences=tuple(sequences),
        sets=tuple(each for each in sets if each.name in shown),
        steps=steps,
        label_words=()
        if probs is None
        else list_label_words(tagger, reading, encoding, label_set, probs),
        reads_subwords=isinstance(tagger.encoder, SubwordEncoder),
    )


def _list_sets(
    system: System, tokens: Ragged, first: Sequence[int], n_sets: int
) -> dict[frozenset[int], float]:
    """Return a set and the most probable others, with their probabilities."""
    own = system.set_log_probs(tokens, np.array(first, dtype=np.int32).reshape(1, 1, -1))
    probs = {frozenset(first): to_probability(own[0, 0])}
    found = system.candidates(tokens, n_sets)
    for row, log_prob in zip(found.labels[0], found.log_probs[0], strict=True):
        if len(probs) < n_sets and log_prob > -np.inf:
            probs.setdefault(frozenset(_ids(row)), to_probability(log_prob))
    return probs


def _search(
    system: RecurrentSystem, encoding: Encoding
) -> tuple[list[Order], dict[frozenset[int], float]]:
    """Run Algorithm 3; return its sequences, and their sets with p."""
    width, most = system.config.search.beam_width, system.config.model.max_labels
    found = most_probable_sets(system.network.decoder, encoding, width, most)
    probs = {
        frozenset(_ids(row)): min(float(log_prob.exp()), 1.0)
        for row, log_prob in zip(found.labels[0], found.log_probs[0], strict=True)
        if log_prob > -torch.inf
    }
    assert found.sequences is not None
    return _list_orders(found.sequences), probs


def _find_orders(
    system: RecurrentSystem, encoding: Encoding, label_set: Sequence[int]
) -> list[Order]:
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


def _follow(
    system: RecurrentSystem,
    encoding: Encoding,
    reading: AlignedText,
    labels: LabelVocabulary,
    order: Sequence[int],
) -> Iterator[Step]:
    """Follow an order again; yield the probability and the attention of each step."""
    decoder = system.network.decoder
    stop = decoder.n_labels
    emitted = torch.tensor(order, dtype=torch.long, device=system.device).view(1, 1, -1)
    attention = decoder.attend(encoding, emitted)[0, 0, :, : len(reading.places)].float()  # (S, T)
    weights = reading.sum_by_word(attention.cpu().numpy())[:, :-1]  # (S, R)
    state = decoder.start(encoding)
    previous = emitted.new_full((1, 1), stop)
    for step, label in enumerate([*order, stop]):
        log_probs, state = decoder.step(encoding, state, previous)
        name = None if label == stop else labels.names[label]
        prob = min(float(log_probs[0, 0, label].exp()), 1.0)
        yield Step(name, prob, tuple(weights[step].tolist()))
        previous = emitted.new_full((1, 1), label)


def _names(labels: LabelVocabulary, row: Sequence[int]) -> tuple[str, ...]:
    return tuple(labels.names[label] for label in row)


def _ids(row: Tensor | Ids) -> list[int]:
    return [label for label in row.tolist() if label >= 0]


def _letters(rank: int) -> str:
    """Return the name of a set by its rank: A, B ... Z, AA, AB ..."""
    name = ""
    while rank >= 0:
        name = ascii_uppercase[rank % 26] + name
        rank = rank // 26 - 1
    return name
