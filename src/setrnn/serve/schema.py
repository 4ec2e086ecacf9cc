"""The requests and the answers of the API: pydantic checks, describes and writes their fields.

The answers are the library's own dataclasses with what the service adds to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from setrnn.data.groups import Group
from setrnn.systems.limits import Limits
from setrnn.systems.rules import RULES
from setrnn.tagging.explanation import Explanation
from setrnn.tagging.prediction import Completion, Prediction
from setrnn.tagging.trust.acceptance import Acceptance

MAX_TOP = 50  # that a request may ask for
MAX_LABELS = 1_000  # that a request may name
MAX_GROUPS = 100  # that a request may have
MAX_NAME = 1_000  # characters of a label, a feature, a model or a rule


def _accept_whole_float(value: Any) -> Any:  # noqa: ANN401 (whatever was sent)
    """Read 3.0 as 3, as JSON does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
# Lists stop at the first error: there may be a million.
Names = Annotated[list[Name], Field(max_length=MAX_LABELS, fail_fast=True)]
Top = Annotated[int, Field(ge=1, le=MAX_TOP), BeforeValidator(_accept_whole_float)]
Count = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(_accept_whole_float)]
ModelName = Annotated[Name | None, Field(description="The model's name; null: the first model.")]
RuleName = Annotated[
    Name | None,
    Field(
        description="The prediction rule; null: the model's own. GET /v1/models lists the rules "
        "of each model.",
        json_schema_extra={"enum": [*RULES, None]},
    ),
]


class _Request(BaseModel):
    """A request: values of another type are refused, not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: ModelName = None


class _DocumentRequest(_Request):
    """A request about one document."""

    text: str = Field(description="The document.")
    features: Names | None = Field(None, description="The document's features.")


class LabelGroup(BaseModel):
    """Labels of which every set has at most, or exactly, a number."""

    model_config = ConfigDict(extra="forbid", strict=True)

    labels: Names = Field(description="The labels; each belongs to at most one group.")
    n: Count = Field(description="How many of them a set has at most.")
    exactly: bool = Field(False, description="Whether it has no fewer, either.")
    name: str = Field("", max_length=MAX_NAME, description="The name of the group, for errors.")


class _Limited(BaseModel):
    """What the predicted sets must satisfy."""

    require: Names = Field([], description="Labels that every set must contain.")
    forbid: Names = Field([], description="Labels that no set may contain.")
    min_labels: Count | None = Field(None, description="The fewest labels of a set.")
    max_labels: Count | None = Field(None, description="The most labels of a set.")
    closed: bool | None = Field(
        None,
        description="Whether each label of a set brings those above it in the model's hierarchy; "
        "null: as the labels that the model was trained on.",
    )
    groups: list[LabelGroup] = Field(
        [], max_length=MAX_GROUPS, description="Groups of labels that bound every set."
    )

    def limits(self) -> Limits:
        """Return the limits; the model checks the labels."""
        return Limits(
            min_labels=self.min_labels or 0,
            max_labels=self.max_labels,
            required=self.require,
            forbidden=self.forbid,
            closed=self.closed,
            groups=[Group(**each.model_dump()) for each in self.groups],
        )


class TagRequest(_Limited, _Request):
    """Texts to tag."""

    texts: list[str] = Field(min_length=1, fail_fast=True, description="The documents.")
    rule: RuleName = None
    top: Top = Field(1, description="How many sets to return: the predicted one and alternatives.")
    features: Annotated[list[Names], Field(fail_fast=True)] | None = Field(
        None, description="The features of each document, if the model was trained with features."
    )
    marginals: bool = Field(False, description="Whether to return p(label | text) too.")
    calibrated: bool = Field(
        True, description="Whether to return calibrated probabilities if the model has them."
    )


class CompleteRequest(_DocumentRequest):
    """A text with some known labels."""

    present: Names = Field([], description="Labels known to be right.")
    absent: Names = Field([], description="Labels known to be wrong.")
    top: Top = Field(3, description="How many sets to return.")


class ExplainRequest(_Limited, _DocumentRequest):
    """A text whose labels to explain."""

    rule: RuleName = None
    labels: Names | None = Field(
        None,
        description="The set to explain instead of the predicted one; [] is the empty set. Cannot "
        "be combined with a rule or limits.",
    )
    top: Top = Field(12, description="How many sequences to return, at most the beam width.")


@dataclass(frozen=True)
class AnsweringModel:
    """The model that answered; the version is a short hash that changes if it is replaced."""

    name: str
    version: str
    method: str


@dataclass(frozen=True)
class Marginal:
    """A label with its probability, and the lowest accepted one; null: it is never accepted."""

    label: str
    probability: float
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
    labels. `shown_labels` contain as many of the true labels as `setrnn calibrate --target-recall`
    asked for; null if it was not. `notes` says what the model did not read of the text: it is
    empty, cut or unknown.
    """

    marginals: list[Marginal] | None = None
    missing_mass: float | None = None


@dataclass(frozen=True)
class TagAnswer:
    """The predictions, in the order of the texts."""

    model: AnsweringModel
    rule: str
    predictions: list[TaggedText]


@dataclass(frozen=True, kw_only=True)
class CompleteAnswer(Completion):
    """The most probable sets that agree with the known labels.

    `labels` is the whole set, with the present labels; `probability` is p(set | text, known).
    `suggestions` has the other labels and their probabilities, in descending order, at most 50.
    `known_probability` is p(known | text): small if the known labels are unlikely under the model.
    """

    model: AnsweringModel


@dataclass(frozen=True, kw_only=True)
class ExplainAnswer(Explanation):
    """Why a model tags a text as it does.

    Set A is the predicted or given one; `rule` is null if it was given. If a set `is_exact`, all
    orders were summed; otherwise its probability is a lower bound. `sequences` and `steps`, of the
    best order of set A, are empty unless the model emits labels one by one; of a mixture, they are
    those of its `member`, and all else is of the whole mixture. `label_words` has the
    labels of set A, then the most probable others; it is empty if the model was trained without
    label evidence. `left_out` says why a label of a higher probability than one of the predicted
    set is not in it. A word's weight in a step or for a label stands at its `place` in `weights`.
    `notes` says how much of the text the model read, and how.
    """

    model: AnsweringModel
    notes: list[str]


@dataclass(frozen=True)
class ModelCard(AnsweringModel):
    """A served model: its rules, what it accepts by rule, its training data.

    `label_target` is the accuracy of the labels that are accepted by themselves; null: none are.
    `keeps_closed` says whether predicted labels bring their ancestors; null without a hierarchy.
    `warnings` are those of its training, such as that it has learned little.
    `columns` are those of the training data, by the options that name them: {"text_field": ...}.
    """

    n_labels: int
    rules: tuple[str, ...]
    own_rule: str
    can_explain: bool
    is_calibrated: bool
    accepts: dict[str, Acceptance]
    label_target: float | None
    data: str | None
    keeps_closed: bool | None
    warnings: tuple[str, ...]
    columns: dict[str, str]


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
class ListedLabel:
    """A label, the number of training documents that have it, and the labels directly above it."""

    label: str
    count: int
    parents: tuple[str, ...]


@dataclass(frozen=True)
class LabelsAnswer:
    """Labels in descending order of count."""

    labels: list[ListedLabel]
    n_matching: int
