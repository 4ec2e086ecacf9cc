"""The answers of the API, declared once: this checks, writes and describes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from setrnn.serve.requests import show_examples
from setrnn.systems.candidates import ScoredSet
from setrnn.tagging.explanation import LinearScore, NamedSet
from setrnn.tagging.prediction import Certificate

Probability = Annotated[float, Field(ge=0, le=1)]
TextNotes = Annotated[
    tuple[str, ...],
    Field(description="What the model did not read of the text: it is empty, cut or unknown."),
]

_MODEL = {"name": "set-rnn-0", "version": "5f0c9d1e2a34", "method": "set-rnn"}
_FIRST = {"labels": ["sport", "velmara", "football"], "probability": 0.71}
_SECOND = {"labels": ["sport", "football"], "probability": 0.12}


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


class ModelVersion(_Answer):
    """The model that answered."""

    name: str
    version: str = Field(description="A short hash that changes when the model is replaced.")
    method: str


class LabelProbability(_Answer):
    """A label and its probability."""

    label: str
    probability: Probability


class Marginal(LabelProbability):
    """The probability of a label, and where it needs no review."""

    accepted_from: float | None = Field(
        description="The lowest accepted probability of the label; null: it is never accepted."
    )


class TaggedText(_Answer):
    """The prediction for one text."""

    labels: tuple[str, ...]
    probability: Probability
    alternatives: tuple[ScoredSet, ...]
    accepted: bool | None = Field(
        description="Whether the prediction needs no review; null: `setrnn calibrate` was not run."
    )
    certificate: Certificate | None = Field(
        description="For set-rnn-exact: whether no set is more probable (`proved`), and the "
        "probability of all sets that were not searched (`pruned_mass`)."
    )
    label_probabilities: dict[str, Probability] | None = Field(
        description="p(label | text) of each of `labels`; null: the model is not calibrated, and "
        "the rule needs only the best set."
    )
    accepted_labels: tuple[str, ...] | None = Field(
        description="The labels that need no review, each by itself; null: `setrnn calibrate` was "
        "not run."
    )
    marginals: list[Marginal] | None = Field(
        description="p(label | text) in descending order, at least 0.001, at most 50."
    )
    missing_mass: float | None = Field(
        description="The probability of the sets that the search did not find. The marginals have "
        "an estimate of their labels."
    )
    notes: TextNotes


class TagAnswer(_Answer):
    """The predictions, in the order of the texts."""

    model_config = show_examples(
        {
            "model": _MODEL,
            "rule": "set",
            "predictions": [
                {
                    **_FIRST,
                    "alternatives": [_SECOND],
                    "accepted": True,
                    "certificate": None,
                    "label_probabilities": {"sport": 0.97, "velmara": 0.9, "football": 0.84},
                    "accepted_labels": ["sport"],
                    "marginals": None,
                    "missing_mass": None,
                    "notes": [],
                }
            ],
        }
    )

    model: ModelVersion
    rule: str
    predictions: list[TaggedText]


class CompleteAnswer(_Answer):
    """The most probable sets that agree with the known labels."""

    model_config = show_examples(
        {
            "model": _MODEL,
            **_FIRST,
            "alternatives": [_SECOND],
            "suggestions": [{"label": "football", "probability": 0.93}],
            "known_probability": 0.98,
            "present": ["sport"],
            "absent": ["hockey"],
            "notes": [],
        }
    )

    model: ModelVersion
    labels: tuple[str, ...] = Field(description="The whole set, including the present labels.")
    probability: Probability = Field(description="p(set | text, known).")
    alternatives: tuple[ScoredSet, ...]
    suggestions: list[LabelProbability] = Field(
        description="The other labels in descending order of probability, at most 50."
    )
    known_probability: Probability = Field(
        description="p(known | text): small if the known labels are unlikely under the model."
    )
    present: tuple[str, ...]
    absent: tuple[str, ...]
    notes: TextNotes


class Sequence(_Answer):
    """A label sequence and the name of its set."""

    labels: tuple[str, ...]
    probability: Probability
    set: str


class AttendedWord(_Answer):
    """A word of the text, and its share of the attention or what it adds to a label's score."""

    text: str
    start: int = Field(description="The position of its first character, in UTF-16 code units.")
    stop: int
    weight: float


class ExplainedStep(_Answer):
    """One step of the best order of set A."""

    label: str | None = Field(description="null at the end (STOP).")
    probability: Probability
    words: list[AttendedWord]


class LabelWords(_Answer):
    """The words that speak for a label (a weight above 0) or against it."""

    label: str
    probability: Probability
    is_in_set: bool = Field(description="False for a probable label that was left out.")
    words: list[AttendedWord]
    score: LinearScore | None = Field(
        default=None, description="Of a classical system: what its log-odds are made of."
    )


class ExplainAnswer(_Answer):
    """Why a model tags a text as it does."""

    model_config = show_examples(
        {
            "model": _MODEL,
            "rule": "set",
            "sequences": [{"labels": _FIRST["labels"], "probability": 0.43, "set": "A"}],
            "sets": [{"name": "A", **_FIRST, "is_exact": True}],
            "steps": [
                {
                    "label": "sport",
                    "probability": 0.97,
                    "words": [{"text": "trophy", "start": 13, "stop": 19, "weight": 0.6}],
                },
                {"label": None, "probability": 0.9, "words": []},
            ],
            "label_words": [
                {
                    "label": "sport",
                    "probability": 0.98,
                    "is_in_set": True,
                    "words": [{"text": "trophy", "start": 13, "stop": 19, "weight": 1.2}],
                }
            ],
            "notes": ["The model read 9 words of 13."],
        }
    )

    model: ModelVersion
    rule: str | None = Field(description="null if the set was given.")
    sequences: list[Sequence] = Field(
        description="Empty, like `steps`, unless the model emits labels one by one."
    )
    sets: tuple[NamedSet, ...] = Field(
        description="A is the predicted or given set. If `is_exact`, all orders were summed; "
        "otherwise the probability is a lower bound."
    )
    steps: list[ExplainedStep]
    label_words: list[LabelWords] = Field(
        description="Of the labels of set A, then of the most probable others; empty if the model "
        "was trained without label evidence."
    )
    notes: list[str] = Field(description="How much of the text the model read, and how.")


class AcceptedFrom(_Answer):
    """Which predictions need no review."""

    target: float = Field(description="The accuracy that was asked for.")
    threshold: float | None = Field(
        description="The lowest accepted probability; null: no prediction is accepted."
    )


class AcceptedLabels(_Answer):
    """Which labels need no review, each by itself."""

    target: float = Field(description="The accuracy of each label that was asked for.")
    n_labels: int = Field(description="How many labels can be accepted.")


class HierarchyCard(_Answer):
    """The hierarchy of a model's labels, in short."""

    keeps_closed: bool = Field(description="Whether predicted labels bring those above them.")
    n_below: int = Field(description="How many labels are below another.")


class ModelCard(_Answer):
    """A served model."""

    name: str
    version: str
    method: str
    is_default: bool
    n_labels: int
    rules: tuple[str, ...]
    own_rule: str
    can_explain: bool
    is_calibrated: bool
    accepts: dict[str, AcceptedFrom] = Field(description="By rule.")
    accepts_labels: AcceptedLabels | None = Field(
        description="null: `setrnn calibrate` was not run."
    )
    data: str | None = Field(description="The training data.")
    hierarchy: HierarchyCard | None = Field(
        description="null: the model has no hierarchy of its labels."
    )


class RequestLimits(_Answer):
    """The limits of a request."""

    max_texts: int
    max_words: int = Field(description="Per text.")
    max_body_bytes: int


class ModelsAnswer(_Answer):
    """The models, the default first, and the limits of a request."""

    model_config = show_examples(
        {
            "models": [
                {
                    **_MODEL,
                    "is_default": True,
                    "n_labels": 68,
                    "rules": ["set", "sequence", "f1"],
                    "own_rule": "set",
                    "can_explain": True,
                    "is_calibrated": True,
                    "accepts": {"set": {"target": 0.9, "threshold": 0.715}},
                    "accepts_labels": {"target": 0.9, "n_labels": 31},
                    "data": "newsroom",
                    "hierarchy": {"keeps_closed": True, "n_below": 45},
                }
            ],
            "limits": {"max_texts": 64, "max_words": 10_000, "max_body_bytes": 4_194_304},
        }
    )

    models: list[ModelCard]
    limits: RequestLimits


class CountedLabel(_Answer):
    """A label and the number of training documents that have it."""

    label: str
    count: int


class LabelsAnswer(_Answer):
    """Labels in descending order of count."""

    model_config = show_examples({"labels": [{"label": "football", "count": 412}], "n_matching": 1})

    labels: list[CountedLabel]
    n_matching: int


class LabelInTree(CountedLabel):
    """A label and the labels directly above it."""

    parents: tuple[str, ...] = Field(description="Several, if it has several parents.")


class HierarchyAnswer(_Answer):
    """The labels of a model with their parents, in descending order of count."""

    model_config = show_examples(
        {
            "keeps_closed": True,
            "labels": [
                {"label": "sport", "count": 1214, "parents": []},
                {"label": "football", "count": 646, "parents": ["sport"]},
            ],
            "n_labels": 2,
        }
    )

    keeps_closed: bool = Field(description="Whether predicted labels bring those above them.")
    labels: list[LabelInTree]
    n_labels: int = Field(description="How many labels the model has.")


class Health(_Answer):
    """The state of the service."""

    status: str


class FieldError(_Answer):
    """What is wrong at one place of a request."""

    pointer: str
    detail: str


class Problem(_Answer):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = None
