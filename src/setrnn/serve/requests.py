"""The requests of the API, declared once: this checks and describes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from setrnn.systems.rules import RULES

MAX_SETS = 50  # that a request may ask for
MAX_LABELS = 1_000  # that a request may name
MAX_NAME = 1_000  # characters of a label, a feature, a model or a rule


def _accept_whole_float(value: Any) -> Any:  # noqa: ANN401 (whatever was sent)
    """Read 3.0 as 3, as JSON does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Name = Annotated[str, Field(max_length=MAX_NAME)]
# Lists stop at the first error: there may be a million.
Names = Annotated[list[Name], Field(max_length=MAX_LABELS, fail_fast=True)]
Top = Annotated[int, Field(ge=1, le=MAX_SETS), BeforeValidator(_accept_whole_float)]
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

_TEXT = "Velmara lift trophy in Kotamira. Velmara beat Palmeda 1-0 on Monday night."


def _show_examples(*values: dict[str, Any]) -> ConfigDict:
    """Return the settings of a request with examples."""
    return ConfigDict(json_schema_extra={"examples": [*values]})


class _Request(BaseModel):
    """A request: values of another type are refused, not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TagRequest(_Request):
    """Texts to tag."""

    model_config = _show_examples({"texts": [_TEXT], "top": 2, "forbid": ["hockey"]})

    texts: list[str] = Field(min_length=1, fail_fast=True, description="The documents.")
    model: ModelName = None
    rule: RuleName = None
    top: Top = Field(1, description="How many sets to return: the predicted one and alternatives.")
    require: Names = Field([], description="Labels that every set must contain.")
    forbid: Names = Field([], description="Labels that no set may contain.")
    min_labels: Count | None = Field(None, description="The fewest labels of a set.")
    max_labels: Count | None = Field(None, description="The most labels of a set.")
    closed: bool | None = Field(
        None,
        description="Whether each label of a set brings those above it in the model's hierarchy; "
        "null: as the labels that the model was trained on.",
    )
    features: Annotated[list[Names], Field(fail_fast=True)] | None = Field(
        None, description="The features of each document, if the model was trained with features."
    )
    marginals: bool = Field(False, description="Whether to return p(label | text) too.")
    calibrated: bool = Field(
        True, description="Whether to return calibrated probabilities if the model has them."
    )

    @model_validator(mode="after")
    def _check_features(self) -> TagRequest:
        if self.features is not None and len(self.features) != len(self.texts):
            problem = "There are {texts} texts but {rows} rows of features"
            found = {"texts": len(self.texts), "rows": len(self.features)}
            raise PydanticCustomError("features", problem, found)
        return self


class CompleteRequest(_Request):
    """A text with some known labels."""

    model_config = _show_examples({"text": _TEXT, "present": ["sport"], "absent": ["hockey"]})

    text: str = Field(description="The document.")
    present: Names = Field([], description="Labels known to be right.")
    absent: Names = Field([], description="Labels known to be wrong.")
    top: Top = Field(3, description="How many sets to return.")
    features: Names | None = Field(None, description="The document's features.")
    model: ModelName = None


class ExplainRequest(_Request):
    """A text whose labels to explain."""

    model_config = _show_examples({"text": _TEXT}, {"text": _TEXT, "labels": ["sport", "football"]})

    text: str = Field(description="The document.")
    rule: RuleName = None
    labels: Names | None = Field(
        None,
        description="The set to explain instead of the predicted one; [] is the empty set. Cannot "
        "be combined with a rule.",
    )
    top: Top = Field(12, description="How many sequences to return, at most the beam width.")
    features: Names | None = Field(None, description="The document's features.")
    model: ModelName = None
