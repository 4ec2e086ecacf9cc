"""The library calls that process a batch of documents, and their results as the API's answers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from setrnn.data.example import KnownLabels
from setrnn.data.reading import STOP_WORD
from setrnn.serve import answers
from setrnn.serve.registry import ServedModel
from setrnn.serve.settings import ServeSettings
from setrnn.systems.candidates import Floats32
from setrnn.systems.limits import Limits
from setrnn.tagging.explaining import why_not_explained
from setrnn.tagging.explanation import Explanation
from setrnn.tagging.prediction import Completion, Prediction

MIN_MARGINAL, MAX_LABELS = 0.001, 50  # of the labels that are listed with their probabilities
MIN_ATTENTION = 0.0005  # of a word in a step
MIN_WEIGHT = 0.01  # of a word for a label, by the label's strongest word
LAST_OF_ONE_UNIT = "\uffff"  # later characters take two code units of UTF-16

Document = tuple[str, Sequence[str]]  # a text and its features


@dataclass(frozen=True)
class Tagging:
    """Predict the set of each document."""

    model: ServedModel
    rule: str
    top: int
    limits: Limits
    is_calibrated: bool
    with_marginals: bool

    @property
    def may_be_slow(self) -> bool:
        """Whether one document may take seconds: with limits, large sets may be scored."""
        return self.limits != Limits()

    def run(self, documents: Sequence[Document]) -> list[answers.TaggedText]:
        """Tag a batch."""
        tagger, wanted = self.model.tagger, (self.rule, self.top, self.limits)
        if not self.with_marginals:
            found = tagger.tag_stream(documents, *wanted, calibrated=self.is_calibrated)
            return [_tagged_text(each) for each in found]
        predictions, marginals = tagger.tag_with_marginals(
            documents, *wanted, calibrated=self.is_calibrated
        )
        rows = zip(predictions, marginals.probs, marginals.missing_mass, strict=True)
        return [
            _tagged_text(each, self._rank_labels(row), float(missing))
            for each, row, missing in rows
        ]

    def _rank_labels(self, probs: Floats32) -> list[answers.Marginal]:
        order = np.argsort(-probs, kind="stable")[:MAX_LABELS]
        names = self.model.tagger.labels.names
        return [
            answers.Marginal(
                label=names[label],
                probability=float(probs[label]),
                accepted_from=self._accepted_from(label),
            )
            for label in order
            if probs[label] >= MIN_MARGINAL
        ]

    def _accepted_from(self, label: int) -> float | None:
        """Return the threshold of a label; thresholds are of calibrated probabilities only."""
        acceptance = self.model.tagger.label_acceptance if self.is_calibrated else None
        if acceptance is None or acceptance.thresholds[label] > 1:
            return None
        return float(acceptance.thresholds[label])


def _tagged_text(
    found: Prediction,
    marginals: list[answers.Marginal] | None = None,
    missing_mass: float | None = None,
) -> answers.TaggedText:
    more = {"marginals": marginals, "missing_mass": missing_mass}
    return answers.TaggedText.model_validate({**vars(found), **more})


@dataclass(frozen=True)
class Completing:
    """Predict the sets of documents with known labels."""

    model: ServedModel
    top: int
    may_be_slow = False

    def run(
        self, documents: Sequence[tuple[Document, KnownLabels]]
    ) -> list[answers.CompleteAnswer]:
        """Complete a batch."""
        texts, known = zip(*documents, strict=True)
        return [
            self._answer(each) for each in self.model.tagger.complete_stream(texts, known, self.top)
        ]

    def _answer(self, found: Completion) -> answers.CompleteAnswer:
        suggestions = _probabilities(found.suggestions[:MAX_LABELS])
        return answers.CompleteAnswer.model_validate(
            {**vars(found), "model": self.model, "suggestions": suggestions}
        )


@dataclass(frozen=True, eq=False)
class Explaining:
    """Explain documents one by one."""

    model: ServedModel
    rule: str | None
    top: int
    labels: Sequence[str] | None = None
    may_be_slow = False

    def run(self, documents: Sequence[Document]) -> list[answers.ExplainAnswer]:
        """Explain each text."""
        explain = self.model.tagger.explain
        return [
            self._answer(explain(text, features, self.top, self.rule, self.labels))
            for text, features in documents
        ]

    def _answer(self, found: Explanation) -> answers.ExplainAnswer:
        sequences = [
            answers.Sequence(labels=each.labels, probability=each.probability, set=each.set_name)
            for each in found.sequences
        ]
        # Offsets in UTF-16 code units, as JavaScript counts them.
        wide = [place for place, each in enumerate(found.text) if each > LAST_OF_ONE_UNIT]
        steps = [
            answers.ExplainedStep(
                label=each.label,
                probability=each.probability,
                words=_words(found, each.weights, MIN_ATTENTION, wide),
            )
            for each in found.steps
        ]
        label_words = [
            answers.LabelWords(
                label=each.label,
                probability=each.probability,
                is_in_set=each.is_in_set,
                words=_words(
                    found,
                    each.weights,
                    MIN_WEIGHT * max(map(abs, each.weights), default=0.0),
                    wide,
                ),
                score=each.score,
            )
            for each in found.label_words
        ]
        return answers.ExplainAnswer.model_validate(
            {
                **vars(found),
                "model": self.model,
                "sequences": sequences,
                "steps": steps,
                "label_words": label_words,
                "notes": found.reading_notes(),
            }
        )


def _words(
    explanation: Explanation, weights: Sequence[float], least: float, wide: Sequence[int]
) -> list[answers.AttendedWord]:
    """List the words with a weight, positive or negative, of at least `least`; no stop words."""
    read = (word for word in explanation.words if word.place is not None)
    return [
        answers.AttendedWord(
            text=word.text,
            start=word.start + bisect_left(wide, word.start),
            stop=word.stop + bisect_left(wide, word.stop),
            weight=weight,
        )
        for word, weight in zip(read, weights, strict=False)  # features follow the words
        if weight and abs(weight) >= least and word.fate != STOP_WORD
    ]


def _probabilities(found: Iterable[tuple[str, float]]) -> list[answers.LabelProbability]:
    return [
        answers.LabelProbability(label=label, probability=probability)
        for label, probability in found
    ]


def list_models(models: Sequence[ServedModel], settings: ServeSettings) -> answers.ModelsAnswer:
    """Return the answer to GET /v1/models."""
    cards = [_card(model, is_default=model is models[0]) for model in models]
    return answers.ModelsAnswer.model_validate({"models": cards, "limits": settings})


def _card(model: ServedModel, is_default: bool) -> answers.ModelCard:
    tagger = model.tagger
    calibration, data = tagger.calibration, tagger.notes.get("data")
    of_labels = tagger.label_acceptance
    return answers.ModelCard.model_validate(
        {
            "name": model.name,
            "version": model.version,
            "method": model.method,
            "is_default": is_default,
            "n_labels": len(tagger.labels),
            "rules": tagger.rules,
            "own_rule": tagger.rule_or_own(None),
            "can_explain": why_not_explained(tagger) is None,
            "is_calibrated": calibration is not None and bool(calibration.scalings),
            "accepts": {} if calibration is None else calibration.acceptance,
            "accepts_labels": None
            if of_labels is None
            else {"target": of_labels.target, "n_labels": of_labels.n_safe},
            "data": None if data is None else str(data),
            "hierarchy": None
            if tagger.hierarchy is None
            else {
                "keeps_closed": tagger.keeps_closed,
                "n_below": int((tagger.closure.above >= 0).any(axis=1).sum()),
            },
        }
    )


def list_hierarchy(model: ServedModel, limit: int) -> answers.HierarchyAnswer:
    """Return the answer to GET /v1/hierarchy."""
    tagger = model.tagger
    known, closure = tagger.labels, None if tagger.hierarchy is None else tagger.closure
    order = sorted(range(len(known)), key=lambda label: -known.counts[label])
    return answers.HierarchyAnswer(
        keeps_closed=tagger.keeps_closed,
        labels=[
            answers.LabelInTree(
                label=known.names[label],
                count=int(known.counts[label]),
                parents=()
                if closure is None
                else tuple(known.names[each] for each in closure.parents(label)),
            )
            for label in order[:limit]
        ],
        n_labels=len(known),
    )


def list_labels(model: ServedModel, prefix: str, limit: int) -> answers.LabelsAnswer:
    """Return the answer to GET /v1/labels."""
    found, known = model.find_labels(prefix), model.tagger.labels
    return answers.LabelsAnswer(
        labels=[
            answers.CountedLabel(label=known.names[label], count=int(known.counts[label]))
            for label in found[:limit]
        ],
        n_matching=len(found),
    )
