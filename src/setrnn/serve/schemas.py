"""What the API takes and gives."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from setrnn.data.tokenizing import whole_characters
from setrnn.serve import examples
from setrnn.systems.rules import RULES

MOST_SETS = 50  # that can be asked for
MOST_LABELS = 1_000  # that a request may name
LONGEST_NAME = 1_000  # characters of a label, a feature, a model or a rule


def _whole_text(value: Any) -> Any:  # noqa: ANN401 (whatever was sent)
    """Put a question mark for half an emoji, as tagging does everywhere."""
    return whole_characters(value) if isinstance(value, str) and not value.isascii() else value


def _whole_number(value: Any) -> Any:  # noqa: ANN401 (whatever was sent)
    """Take 3.0 for 3, as JSON does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Text = Annotated[str, BeforeValidator(_whole_text)]
Name = Annotated[str, Field(max_length=LONGEST_NAME), BeforeValidator(_whole_text)]
# The first thing wrong in a list is said, not each: there may be a million.
Labels = Annotated[list[Name], Field(max_length=MOST_LABELS, fail_fast=True)]
Top = Annotated[int, Field(ge=1, le=MOST_SETS), BeforeValidator(_whole_number)]
Count = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(_whole_number)]
# Sums of probabilities can be above 1 in the last digit.
Probability = Annotated[float, Field(ge=0, le=1), BeforeValidator(lambda value: min(value, 1.0))]


def _example(*values: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [*values]})


class _Request(BaseModel):
    """What is sent: nothing is guessed from a value of another kind."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


ModelName = Annotated[Name | None, Field(description="A model by its name; the first if none.")]
RuleName = Annotated[
    Name | None,
    Field(
        description="How the set is chosen: set, sequence, f1, hamming, micro-f1 or label-f1; "
        "the model's own if none. GET /v1/models lists those a model has.",
        json_schema_extra={"enum": [*RULES, None]},
    ),
]


class TagRequest(_Request):
    """Texts to tag."""

    model_config = _example(examples.TAG)

    texts: list[Text] = Field(min_length=1, fail_fast=True, description="The documents.")
    model: ModelName = None
    rule: RuleName = None
    top: Top = Field(1, description="How many sets to give: the predicted one and alternatives.")
    require: Labels = Field([], description="Labels every set must hold.")
    forbid: Labels = Field([], description="Labels no set may hold.")
    min_labels: Count | None = Field(None, description="How many labels a set has at least.")
    max_labels: Count | None = Field(None, description="How many labels a set has at most.")
    features: Annotated[list[Labels], Field(fail_fast=True)] | None = Field(
        None, description="Each document's features, where the model was trained with some."
    )
    marginals: bool = Field(False, description="Whether to give p(label | text) too.")
    calibrated: bool = Field(
        True, description="Calibrated probabilities, where the model has a calibration."
    )


class CompleteRequest(_Request):
    """A text of which some labels are known."""

    model_config = _example(examples.COMPLETE)

    text: Text = Field(description="The document.")
    present: Labels = Field([], description="Labels known to be right.")
    absent: Labels = Field([], description="Labels known to be wrong.")
    top: Top = Field(3, description="How many sets to give.")
    features: Labels | None = Field(None, description="The document's features.")
    model: ModelName = None


class ExplainRequest(_Request):
    """A text to explain the tags of."""

    model_config = _example(examples.EXPLAIN, examples.EXPLAIN_GIVEN)

    text: Text = Field(description="The document.")
    rule: Name | None = Field(
        None,
        description="The model's own if none.",
        json_schema_extra={"enum": ["set", "sequence", None]},
    )
    labels: Labels | None = Field(
        None,
        description="Explain this set instead of the predicted one; [] is the empty set. "
        "No rule goes with it.",
    )
    top: Top = Field(12, description="How many sequences to give; the beam width is the limit.")
    features: Labels | None = Field(None, description="The document's features.")
    model: ModelName = None


class ModelVersion(_Answer):
    """Which model answered."""

    name: str
    version: str = Field(description="A short hash: another after the model is replaced.")
    method: str


class Set(_Answer):
    """A label set and its probability."""

    labels: list[str]
    probability: Probability


class LabelProbability(_Answer):
    """A label and its probability."""

    label: str
    probability: Probability


class CertificateOfSet(_Answer):
    """What the search of set-rnn-exact can say for the predicted set."""

    proved: bool = Field(description="No set at all is more probable.")
    pruned_mass: float = Field(description="The probability of all that was not looked at.")


class TaggedText(_Answer):
    """What is predicted for one text."""

    labels: list[str]
    probability: Probability
    alternatives: list[Set]
    accepted: bool | None = Field(
        description="Whether it needs no second look; null: `setrnn calibrate` was not run."
    )
    certificate: CertificateOfSet | None
    marginals: list[LabelProbability] | None = Field(
        description="p(label | text) by falling probability, from 0.001, at most 50."
    )
    missing_mass: float | None = Field(
        description="The probability of the sets that the marginals do not rest on."
    )


class TagAnswer(_Answer):
    """The predictions, in the order of the texts."""

    model_config = _example(examples.TAGGED)

    model: ModelVersion
    rule: str
    predictions: list[TaggedText]


class CompleteAnswer(_Answer):
    """The most probable sets that fit what is known."""

    model_config = _example(examples.COMPLETED)

    model: ModelVersion
    labels: list[str] = Field(description="The whole set, the present labels included.")
    probability: Probability = Field(description="p(set | text, known).")
    alternatives: list[Set]
    suggestions: list[LabelProbability] = Field(
        description="The labels to ask about next, by falling probability, at most 50."
    )
    known_probability: Probability = Field(
        description="p(known | text): small where the known labels surprise the model."
    )
    present: list[str]
    absent: list[str]


class Sequence(_Answer):
    """A label sequence, and the name of the set it is an order of."""

    labels: list[str]
    probability: Probability
    set: str


class NamedSet(_Answer):
    """A set: A is the predicted one, or the one that was given."""

    name: str
    labels: list[str]
    probability: Probability
    is_exact: bool = Field(description="All orders were summed; otherwise it is a lower bound.")


class AttendedWord(_Answer):
    """A word of the text, and the share of the attention it got."""

    text: str
    start: int = Field(description="Where it begins in the text, in UTF-16 code units.")
    stop: int
    weight: float


class ExplainedStep(_Answer):
    """One step of the best order of set A."""

    label: str | None = Field(description="null at the end (STOP).")
    probability: Probability
    words: list[AttendedWord]


class ExplainAnswer(_Answer):
    """Why a recurrent model tags a text as it does."""

    model_config = _example(examples.EXPLAINED)

    model: ModelVersion
    rule: str | None = Field(description="null where the set was given.")
    sequences: list[Sequence]
    sets: list[NamedSet]
    steps: list[ExplainedStep]
    notes: list[str] = Field(description="How much of the text was read, and how.")


class AcceptedFrom(_Answer):
    """Which predictions need no second look."""

    target: float = Field(description="The accuracy that was asked for.")
    threshold: float | None = Field(description="The probability to reach; null: none is accepted.")


class ModelCard(_Answer):
    """A model that is served."""

    name: str
    version: str
    method: str
    is_default: bool
    n_labels: int
    rules: list[str]
    own_rule: str
    can_explain: bool
    is_calibrated: bool
    accepts: dict[str, AcceptedFrom] = Field(description="By rule.")
    data: str | None = Field(description="What it was trained on.")


class RequestLimits(_Answer):
    """What a request may hold."""

    max_texts: int
    max_words: int = Field(description="Of a text.")
    max_body_bytes: int


class ModelsAnswer(_Answer):
    """The models, the default one first, and how much they can be asked at once."""

    model_config = _example(examples.MODELS)

    models: list[ModelCard]
    limits: RequestLimits


class CountedLabel(_Answer):
    """A label, and how many documents of training had it."""

    label: str
    count: int


class LabelsAnswer(_Answer):
    """Labels by falling count."""

    model_config = _example(examples.LABELS)

    labels: list[CountedLabel]
    n_matching: int


class Health(_Answer):
    """How the service is."""

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
