"""The words that speak for each label and against it, by a network or a classical system."""

# T tokens, R words and features read, S labels of the explained set, N labels shown, L labels

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.data.text.alignment import AlignedText
from setrnn.data.text.words import FEATURE_PREFIX, NUMBER
from setrnn.model.evidence import LabelEvidence
from setrnn.model.interfaces import Encoding
from setrnn.systems.candidates import Floats32
from setrnn.systems.classical.features import Tfidf
from setrnn.systems.classical.system import ClassicalSystem, LinearTerms
from setrnn.systems.neural import NeuralSystem
from setrnn.systems.system import System
from setrnn.training.wide import weigh_tokens

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger

WORD, PAIR, FEATURE, LABEL = "word", "pair", "feature", "label"  # kinds of what has a weight
N_LEFT_OUT, MIN_PROBABILITY = 3, 0.001  # labels outside the explained set that are shown


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
    def remark(self) -> str:
        """What it is, unless it is a known word."""
        return "unknown" if self.is_unknown else "" if self.kind == WORD else self.kind


def has_label_words(system: System) -> bool:
    """Return whether a system shows which words speak for a label."""
    return isinstance(system, ClassicalSystem) or _find_evidence(system) is not None


def list_label_words(
    tagger: Tagger,
    reading: AlignedText,
    encoding: Encoding | None,
    label_set: Sequence[int],
    probs: Floats32,
) -> tuple[LabelWords, ...]:
    """Return the words for each label of a set, and for the most probable labels outside of it.

    `encoding` is what a network makes of the tokens, `probs` (L,) are those of all labels.
    """
    others = [
        label
        for label in np.argsort(-probs, kind="stable")[: len(label_set) + N_LEFT_OUT].tolist()
        if label not in label_set and probs[label] >= MIN_PROBABILITY
    ]
    chosen = [*label_set, *others[:N_LEFT_OUT]]
    values = _weigh_tokens(tagger.system, reading.tokens, encoding, chosen)
    if values is None:
        return ()
    weights = reading.sum_by_word(values.T).tolist()  # (N, R + 1)
    scores = _split_scores(tagger, reading, chosen, label_set)
    return tuple(
        LabelWords(
            tagger.labels.names[label],
            float(probs[label]),
            label in label_set,
            tuple(row[:-1]),
            row[-1],
            score,
        )
        for label, row, score in zip(chosen, weights, scores, strict=True)
    )


def _find_evidence(system: System) -> LabelEvidence | None:
    """Return the part of a network that attends to words for each label; None without one."""
    return system.network.evidence if isinstance(system, NeuralSystem) else None


def _weigh_tokens(
    system: System, tokens: Ragged, encoding: Encoding | None, labels: Sequence[int]
) -> Floats32 | None:
    """Return what each token adds to the score of some labels, (T, N); None if it is not known."""
    if isinstance(system, ClassicalSystem):
        return system.weigh_tokens(tokens, labels)
    evidence = _find_evidence(system)
    if evidence is None or encoding is None:
        return None
    by_word = evidence.by_word(encoding)[0, : len(tokens[0]), list(labels)]
    found: Floats32 = by_word.float().cpu().numpy()
    wide = system.network.wide if isinstance(system, NeuralSystem) else None
    return found if wide is None else found + weigh_tokens(wide, tokens)[:, list(labels)]


def _split_scores(
    tagger: Tagger, reading: AlignedText, chosen: Sequence[int], label_set: Sequence[int]
) -> Sequence[LinearScore | None]:
    """Return what the log-odds of each label are made of; None unless the system is linear."""
    system = tagger.system
    if not isinstance(system, ClassicalSystem):
        return [None] * len(chosen)
    found = system.split_log_odds(reading.tokens, chosen, label_set)
    named = list(_name_features(tagger, system.tfidf, reading, found))
    held = [tagger.labels.names[label] for label in label_set]
    return [_score(found, place, named, held) for place in range(len(chosen))]


def _score(
    found: LinearTerms, place: int, named: Sequence[tuple[str, str, int]], held: Sequence[str]
) -> LinearScore:
    """Return the score of the label at a place of `found`."""
    weights, bias = found.weights[:, place].tolist(), float(found.intercepts[place])
    terms = [
        Term(text, kind, n_times, value, weight, weight * value)
        for (text, kind, n_times), value, weight in zip(
            named, found.values.tolist(), weights, strict=True
        )
        if weight
    ]
    if found.held_weights is not None:
        of_labels = zip(held, found.held_weights[:, place].tolist(), strict=True)
        terms += [Term(name, LABEL, 1, 1.0, weight, weight) for name, weight in of_labels if weight]
    total = fsum((bias, *(term.contribution for term in terms)))
    return LinearScore(total, bias, tuple(terms))


def _name_features(
    tagger: Tagger, tfidf: Tfidf, reading: AlignedText, found: LinearTerms
) -> Iterator[tuple[str, str, int]]:
    """Yield the text of each feature as it was first written, its kind and how often it occurs."""
    ids, known = [int(token) for token in reading.tokens[0]], tagger.encoder.tokens
    words = [word for word in reading.words if word.place is not None]
    written = (*(word.text for word in words), *reading.features)
    counts = Counter[tuple[int, ...]]((token,) for token in ids)
    counts.update(pairwise(ids))
    text_of: dict[tuple[int, ...], str] = {}
    for token, text in zip(ids, written, strict=True):
        text_of.setdefault((token,), "a number" if known[token] == NUMBER else text)
    for place, pair in enumerate(pairwise(ids)):
        is_joined = place + 1 < len(words) and words[place].stop == words[place + 1].start
        text_of.setdefault(pair, ("" if is_joined else " ").join(written[place : place + 2]))
    for column in found.columns.tolist():
        tokens = tfidf.tokens_of(column)
        is_tag = known[tokens[0]].startswith(FEATURE_PREFIX)
        kind = PAIR if len(tokens) > 1 else FEATURE if is_tag else WORD
        yield text_of[tokens], kind, counts[tokens]
