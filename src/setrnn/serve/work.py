"""The library calls that process a batch of documents, and their results as the API's answers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from setrnn.data.example import KnownLabels
from setrnn.data.text.alignment import STOP_WORD
from setrnn.serve.answers import (
    MAX_LABELS,
    AttendedWord,
    CompleteAnswer,
    ExplainAnswer,
    ExplainedLabel,
    ExplainedSequence,
    ExplainedStep,
    Marginal,
    TaggedText,
)
from setrnn.serve.registry import ServedModel
from setrnn.systems.candidates import Floats32
from setrnn.systems.limits import Limits
from setrnn.tagging.explain.explain import Explanation

MIN_MARGINAL = 0.001  # of the labels that are listed with their probabilities
MIN_ATTENTION = 0.0005  # of a word in a step
MIN_WEIGHT = 0.01  # of a word for a label, by the label's strongest word
LAST_OF_ONE_UNIT = "\uffff"  # later characters take two code units of UTF-16

NO_LIMITS = Limits()

Document = tuple[str, Sequence[str]]  # a text and its features


@dataclass(frozen=True)
class Tagging:
    """Predict the set of each document."""

    model: ServedModel
    rule: str
    top: int = 1
    limits: Limits = NO_LIMITS
    is_calibrated: bool = True
    with_marginals: bool = False

    @property
    def may_be_slow(self) -> bool:
        """Whether one document may take seconds: with limits, large sets may be scored."""
        return self.limits != NO_LIMITS

    def run(self, documents: Sequence[Document]) -> list[TaggedText]:
        """Tag a batch."""
        tagger, wanted = self.model.tagger, (self.rule, self.top, self.limits)
        if not self.with_marginals:
            found = tagger.tag_stream(documents, *wanted, calibrated=self.is_calibrated)
            return [TaggedText(**vars(each)) for each in found]
        predictions, marginals = tagger.tag_with_marginals(
            documents, *wanted, calibrated=self.is_calibrated
        )
        rows = zip(predictions, marginals.probs, marginals.missing_mass, strict=True)
        return [
            TaggedText(**vars(each), marginals=self._rank_labels(row), missing_mass=float(missing))
            for each, row, missing in rows
        ]

    def _rank_labels(self, probs: Floats32) -> list[Marginal]:
        order = np.argsort(-probs, kind="stable")[:MAX_LABELS]
        names = self.model.tagger.labels.names
        return [
            Marginal(names[label], float(probs[label]), self._accepted_from(label))
            for label in order
            if probs[label] >= MIN_MARGINAL
        ]

    def _accepted_from(self, label: int) -> float | None:
        """Return the threshold of a label; thresholds are of calibrated probabilities only."""
        acceptance = self.model.tagger.label_acceptance if self.is_calibrated else None
        if acceptance is None or acceptance.thresholds[label] > 1:
            return None
        return float(acceptance.thresholds[label])


@dataclass(frozen=True)
class Completing:
    """Predict the sets of documents with known labels."""

    model: ServedModel
    top: int
    may_be_slow = False

    def run(self, documents: Sequence[tuple[Document, KnownLabels]]) -> list[CompleteAnswer]:
        """Complete a batch."""
        texts, known = zip(*documents, strict=True)
        found = self.model.tagger.complete_stream(texts, known, self.top)
        return [CompleteAnswer(**vars(each), model=self.model.answering) for each in found]


@dataclass(frozen=True, eq=False)
class Explaining:
    """Explain documents one by one."""

    model: ServedModel
    rule: str | None
    top: int
    labels: Sequence[str] | None = None
    may_be_slow = False

    def run(self, documents: Sequence[Document]) -> list[ExplainAnswer]:
        """Explain each text."""
        explain = self.model.tagger.explain
        return [
            self._answer(explain(text, features, self.top, self.rule, self.labels))
            for text, features in documents
        ]

    def _answer(self, found: Explanation) -> ExplainAnswer:
        wide = [place for place, each in enumerate(found.text) if each > LAST_OF_ONE_UNIT]
        list_words = partial(_list_words, found, wide)
        return ExplainAnswer(
            self.model.answering,
            found.rule,
            [
                ExplainedSequence(each.labels, each.probability, each.set_name)
                for each in found.sequences
            ],
            found.sets,
            [
                ExplainedStep(each.label, each.probability, list_words(each.weights, MIN_ATTENTION))
                for each in found.steps
            ],
            [
                ExplainedLabel(
                    each.label,
                    each.probability,
                    each.is_in_set,
                    list_words(each.weights, MIN_WEIGHT * max(map(abs, each.weights), default=0.0)),
                    each.score,
                )
                for each in found.label_words
            ],
            found.reading_notes(),
        )


def _list_words(
    explanation: Explanation, wide: Sequence[int], weights: Sequence[float], least: float
) -> list[AttendedWord]:
    """List the words with a weight, positive or negative, of at least `least`; no stop words.

    Offsets are in UTF-16 code units, as JavaScript counts them; `wide` has the places of the
    characters of two units.
    """
    read = (word for word in explanation.words if word.place is not None)
    return [
        AttendedWord(
            word.text,
            word.start + bisect_left(wide, word.start),
            word.stop + bisect_left(wide, word.stop),
            weight,
        )
        for word, weight in zip(read, weights, strict=False)  # features follow the words
        if weight and abs(weight) >= least and word.fate != STOP_WORD
    ]
