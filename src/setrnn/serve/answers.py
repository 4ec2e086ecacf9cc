"""The answers of the API, and the library calls that make them, one batch of documents at a time.

Answers are the library's own dataclasses with what the service adds to them. Pydantic writes and
describes them by their types and docstrings.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import PlainSerializer

from setrnn.data.example import KnownLabels
from setrnn.data.text.alignment import STOP_WORD
from setrnn.serve.registry import AnsweringModel, ServedModel
from setrnn.systems.limits import Limits
from setrnn.tagging.explain.explain import Explanation, FoundSequence, NamedSet
from setrnn.tagging.explain.words import LinearScore
from setrnn.tagging.prediction import Completion, Prediction

MAX_LABELS = 50  # that are listed with their probabilities
MIN_MARGINAL = 0.001  # of the labels that are listed with their probabilities
MIN_ATTENTION = 0.0005  # of a word in a step
MIN_WEIGHT = 0.01  # of a word for a label, by the label's strongest word
LAST_OF_ONE_UNIT = "\uffff"  # later characters take two code units of UTF-16

Document = tuple[str, Sequence[str]]  # a text and its features


@dataclass(frozen=True)
class LabelProbability:
    """A label and its probability."""

    label: str
    probability: float


@dataclass(frozen=True)
class Marginal(LabelProbability):
    """A label with its probability, and the lowest accepted one; null: it is never accepted."""

    accepted_from: float | None


@dataclass(frozen=True, kw_only=True)
class TaggedText(Prediction):
    """The prediction for one text.

    `accepted` says whether the prediction needs no review, `accepted_labels` which labels need
    none, each by itself; null if `setrnn calibrate` was not run. `label_probabilities` has
    p(label | text) of each of `labels`; null if the model is not calibrated and the rule needs only
    the best set. `certificate`, of set-rnn-exact, says whether no set is more probable (`proved`),
    and the probability of all sets that were not searched (`pruned_mass`). `marginals` has
    p(label | text) in descending order, at least 0.001, at most 50. `missing_mass` is the
    probability of the sets that the search did not find; the marginals have an estimate of their
    labels. `notes` says what the model did not read of the text: it is empty, cut or unknown.
    """

    marginals: list[Marginal] | None = None
    missing_mass: float | None = None


@dataclass(frozen=True)
class TagAnswer:
    """The predictions, in the order of the texts."""

    model: AnsweringModel
    rule: str
    predictions: list[TaggedText]


def _suggest(found: tuple[tuple[str, float], ...]) -> list[LabelProbability]:
    return [LabelProbability(*each) for each in found[:MAX_LABELS]]


@dataclass(frozen=True, kw_only=True)
class CompleteAnswer(Completion):
    """The most probable sets that agree with the known labels.

    `labels` is the whole set, with the present labels; `probability` is p(set | text, known).
    `suggestions` has the other labels in descending order of probability, at most 50.
    `known_probability` is p(known | text): small if the known labels are unlikely under the model.
    """

    model: AnsweringModel
    suggestions: Annotated[
        tuple[tuple[str, float], ...],
        PlainSerializer(_suggest, return_type=list[LabelProbability]),
    ]


@dataclass(frozen=True)
class AttendedWord:
    """A word of the text, and its share of the attention or what it adds to a label's score.

    `start` and `stop` are in UTF-16 code units.
    """

    text: str
    start: int
    stop: int
    weight: float


@dataclass(frozen=True)
class ExplainedStep:
    """One step of the best order of set A; the label is null at the end (STOP)."""

    label: str | None
    probability: float
    words: list[AttendedWord]


@dataclass(frozen=True)
class ExplainedLabel:
    """The words that speak for a label (a weight above 0) or against it.

    `is_in_set` is false for a probable label that was left out. `score`, of a classical system, is
    what its log-odds are made of.
    """

    label: str
    probability: float
    is_in_set: bool
    words: list[AttendedWord]
    score: LinearScore | None


@dataclass(frozen=True)
class ExplainAnswer:
    """Why a model tags a text as it does.

    Set A is the predicted or given one; `rule` is null if it was given. If a set `is_exact`, all
    orders were summed; otherwise its probability is a lower bound. `sequences` and `steps` are
    empty unless the model emits labels one by one. `label_words` has the labels of set A, then the
    most probable others; it is empty if the model was trained without label evidence. `notes` says
    how much of the text the model read, and how.
    """

    model: AnsweringModel
    rule: str | None
    sequences: tuple[FoundSequence, ...]
    sets: tuple[NamedSet, ...]
    steps: list[ExplainedStep]
    label_words: list[ExplainedLabel]
    notes: list[str]


@dataclass(frozen=True)
class AcceptedFrom:
    """The accuracy that was asked for, and the lowest accepted probability; null: none is."""

    target: float
    threshold: float | None


@dataclass(frozen=True)
class AcceptedLabels:
    """The accuracy of each label that was asked for, and how many labels can be accepted."""

    target: float
    n_labels: int


@dataclass(frozen=True)
class HierarchyCard:
    """Whether predicted labels bring their ancestors, and how many labels are below another."""

    keeps_closed: bool
    n_below: int


@dataclass(frozen=True)
class ModelCard(AnsweringModel):
    """A served model: its rules, what it accepts by rule, its training data, its hierarchy."""

    is_default: bool
    n_labels: int
    rules: tuple[str, ...]
    own_rule: str
    can_explain: bool
    is_calibrated: bool
    accepts: dict[str, AcceptedFrom]
    accepts_labels: AcceptedLabels | None
    data: str | None
    hierarchy: HierarchyCard | None


@dataclass(frozen=True)
class RequestLimits:
    """The most texts of a request, words of a text, and bytes of a body."""

    max_texts: int
    max_words: int
    max_body_bytes: int


@dataclass(frozen=True)
class ModelsAnswer:
    """The models, the default first, and the limits of a request."""

    models: list[ModelCard]
    limits: RequestLimits


@dataclass(frozen=True)
class CountedLabel:
    """A label and the number of training documents that have it."""

    label: str
    count: int


@dataclass(frozen=True)
class LabelsAnswer:
    """Labels in descending order of count."""

    labels: list[CountedLabel]
    n_matching: int


@dataclass(frozen=True)
class LabelInTree(CountedLabel):
    """A label and the labels directly above it."""

    parents: tuple[str, ...]


@dataclass(frozen=True)
class HierarchyAnswer:
    """The labels of a model with their parents, in descending order of count.

    `keeps_closed` says whether predicted labels bring their ancestors.
    """

    keeps_closed: bool
    labels: list[LabelInTree]
    n_labels: int


@dataclass(frozen=True)
class Health:
    """The state of the service."""

    status: str


def tag_documents(
    documents: Sequence[Document],
    model: ServedModel,
    rule: str,
    limits: Limits,
    top: int = 1,
    calibrated: bool = True,
    with_marginals: bool = False,
) -> list[TaggedText]:
    """Predict the set of each document."""
    tagger = model.tagger
    if not with_marginals:
        found = tagger.tag_stream(documents, rule, top, limits, calibrated=calibrated)
        return [TaggedText(**vars(each)) for each in found]
    predictions, marginals = tagger.tag_with_marginals(
        documents, rule, top, limits, calibrated=calibrated
    )
    names = tagger.labels.names
    # Thresholds are of calibrated probabilities; one above 1 accepts nothing.
    acceptance = tagger.label_acceptance if calibrated else None
    thresholds = np.full(len(names), 2.0) if acceptance is None else acceptance.thresholds
    answers = []
    for each, probs, missing in zip(
        predictions, marginals.probs, marginals.missing_mass, strict=True
    ):
        ranked = [
            Marginal(
                names[label],
                float(probs[label]),
                float(thresholds[label]) if thresholds[label] <= 1 else None,
            )
            for label in np.argsort(-probs, kind="stable")[:MAX_LABELS]
            if probs[label] >= MIN_MARGINAL
        ]
        answers.append(TaggedText(**vars(each), marginals=ranked, missing_mass=float(missing)))
    return answers


def complete_documents(
    documents: Sequence[tuple[str, Sequence[str], KnownLabels]], model: ServedModel, top: int
) -> list[CompleteAnswer]:
    """Predict the set of each document with known labels."""
    texts, features, known = zip(*documents, strict=True)
    found = model.tagger.complete_stream(zip(texts, features, strict=True), known, top)
    return [CompleteAnswer(**vars(each), model=model.answering) for each in found]


def explain_documents(
    documents: Sequence[Document],
    model: ServedModel,
    rule: str | None,
    labels: Sequence[str] | None,
    top: int,
) -> list[ExplainAnswer]:
    """Explain documents one by one."""
    explain = model.tagger.explain
    return [
        _answer_explanation(explain(text, features, top, rule, labels), model)
        for text, features in documents
    ]


def _answer_explanation(found: Explanation, model: ServedModel) -> ExplainAnswer:
    wide = [place for place, each in enumerate(found.text) if each > LAST_OF_ONE_UNIT]
    words = [word for word in found.words if word.place is not None]

    def list_words(weights: Sequence[float], least: float) -> list[AttendedWord]:
        """List the words with a weight, positive or negative, of at least `least`; no stop words.

        Offsets are in UTF-16 code units, as JavaScript counts them.
        """
        return [
            AttendedWord(
                word.text,
                word.start + bisect_left(wide, word.start),
                word.stop + bisect_left(wide, word.stop),
                weight,
            )
            for word, weight in zip(words, weights, strict=False)  # features follow the words
            if weight and abs(weight) >= least and word.fate != STOP_WORD
        ]

    return ExplainAnswer(
        model.answering,
        found.rule,
        found.sequences,
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
