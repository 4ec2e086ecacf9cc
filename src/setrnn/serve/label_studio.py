"""The routes by which Label Studio asks a machine learning backend: predict, setup, health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from setrnn.data.formats.label_studio import make_result, write_label_config
from setrnn.errors import DataError
from setrnn.serve.answers import ModelVersion
from setrnn.serve.json_route import JsonRoute
from setrnn.serve.label_config import ChoicesTag, choose_tag
from setrnn.serve.problems import ProblemError, shorten
from setrnn.serve.registry import NotReadyError, ServedModel
from setrnn.serve.requests import MAX_NAME, Text
from setrnn.serve.routes import check_texts, process, service_of
from setrnn.serve.work import Tagging
from setrnn.systems.limits import Limits

HEALTH = "/health"

posts = APIRouter(route_class=JsonRoute, include_in_schema=False)
router = APIRouter(include_in_schema=False)


class _Asked(BaseModel):
    """What Label Studio sends; fields that are not used are ignored, whatever they hold."""

    model_config = ConfigDict(extra="ignore")


class Task(_Asked):
    """A task: its data."""

    data: dict[str, Any]


class PredictRequest(_Asked):
    """Tasks of one project, and its labeling interface."""

    tasks: list[Task] = Field(min_length=1)
    label_config: Text


class SetupRequest(_Asked):
    """The labeling interface of a project that connects the backend."""

    schema_: Text = Field(default="", alias="schema")


class AnyRequest(_Asked):
    """An event or a request to train."""


class _Said(BaseModel):
    """An answer; the model is named in a header only."""

    model_config = ConfigDict(from_attributes=True, protected_namespaces=())

    model: ModelVersion = Field(exclude=True)


class LabelStudioPrediction(BaseModel):
    """The choices of a task; the score is the probability of the whole set."""

    model_config = ConfigDict(protected_namespaces=())

    result: list[dict[str, Any]]
    score: float
    model_version: str


class PredictAnswer(_Said):
    """A prediction per task, in their order."""

    results: list[LabelStudioPrediction]
    model_version: str


class SetupAnswer(_Said):
    """The version of the model."""

    model_version: str


class VersionsAnswer(_Said):
    """All versions of the model: the current one."""

    versions: list[str]


class IgnoredAnswer(_Said):
    """What is said to events and to training."""

    status: str = "ignored"
    detail: str = (
        "This backend does not train. Export the annotations as JSON, then: setrnn update MODEL "
        "EXPORT.json --out NEW"
    )


@posts.post("/predict")
async def predict(wanted: PredictRequest, request: Request) -> PredictAnswer:
    """Predict the choices of each task, by the first model."""
    service = service_of(request)
    model = service.registry.find(None)
    tag = choose_tag(wanted.label_config, model.tagger.labels.index)
    texts = [_text_of(task, tag, number) for number, task in enumerate(wanted.tasks)]
    check_texts(service.settings, texts)
    work = Tagging(
        model, model.tagger.rule_or_own(None), 1, _limit(tag, model), True, with_marginals=False
    )
    found = await process(request, model, work, [(text, ()) for text in texts])
    version = _version(model)
    results = [
        LabelStudioPrediction(
            result=make_result(each.labels, tag.name, tag.to_name),
            score=each.probability,
            model_version=version,
        )
        for each in found
    ]
    return PredictAnswer.model_validate(
        {"model": model, "results": results, "model_version": version}
    )


@posts.post("/setup")
async def setup(wanted: SetupRequest, request: Request) -> SetupAnswer:
    """Check that the project has choices of the model, so that connecting it says what is wrong."""
    model = service_of(request).registry.find(None)
    if wanted.schema_:
        _limit(choose_tag(wanted.schema_, model.tagger.labels.index), model)
    return SetupAnswer.model_validate({"model": model, "model_version": _version(model)})


@posts.post("/versions")
async def versions(wanted: AnyRequest, request: Request) -> VersionsAnswer:
    """List the version of the model."""
    model = service_of(request).registry.find(None)
    return VersionsAnswer.model_validate({"model": model, "versions": [_version(model)]})


@posts.post("/train")
@posts.post("/webhook")
async def ignore(wanted: AnyRequest, request: Request) -> IgnoredAnswer:
    """Take note of an event, and do nothing: annotations are exported and trained on by hand."""
    return IgnoredAnswer.model_validate({"model": service_of(request).registry.find(None)})


@router.get(HEALTH)
async def health(request: Request) -> dict[str, str]:
    """Report that the backend is up, once its models are loaded."""
    registry = service_of(request).registry
    if not registry.is_ready:
        raise NotReadyError()
    return {"status": "UP", "model_class": "setrnn"}


@router.get("/label-config", response_class=PlainTextResponse)
async def label_config(request: Request) -> str:
    """Return a labeling interface with the labels of the first model."""
    return write_label_config(service_of(request).registry.find(None).tagger.labels.names) + "\n"


def _text_of(task: Task, tag: ChoicesTag, number: int) -> str:
    """Return the text of a task; an empty cell of an imported table is null."""
    text = task.data.get(tag.text_field, False)
    if text is None:
        return ""
    if not isinstance(text, str):
        name = shorten(tag.text_field)
        raise ProblemError(
            "invalid", f"#/tasks/{number}/data/{name}: The project's text must be a string here."
        )
    return text


def _limit(tag: ChoicesTag, model: ServedModel) -> Limits:
    """Return limits that keep predictions within the choices of a project.

    A set need not be closed if that would keep choices out: those with a label above them that the
    project lacks, or, if only one may be chosen, all that are below another.
    """
    labels, tree = model.tagger.labels, model.tagger.hierarchy
    known = set(tag.choices)
    lacking: Sequence[str] = [each for each in labels.names if each not in known] if known else ()
    if len(lacking) == len(labels):
        raise DataError(
            f"None of the choices of '{shorten(tag.name)}' is a label of the model. GET "
            "/label-config returns an interface with its labels."
        )
    above = set() if tree is None else {name for each in known for name in tree.ancestors(each)}
    opens = tag.is_single or not above.isdisjoint(lacking)
    return Limits(
        max_labels=1 if tag.is_single else None,
        forbidden=tuple(lacking),
        closed=False if tree is not None and opens else None,
    )


def _version(model: ServedModel) -> str:
    return f"{model.name}-{model.version}"[:MAX_NAME]
