"""A machine learning backend of Label Studio: its routes, and how it reads a project."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from setrnn.data.read.label_studio import make_result, write_label_config
from setrnn.errors import DataError
from setrnn.serve.batching import Work
from setrnn.serve.problems import ProblemError, shorten
from setrnn.serve.registry import ServedModel
from setrnn.serve.routes import NO_LIMITS, JsonRoute, process, service_of
from setrnn.systems.limits import Limits

HEALTH = "/health"
MAX_CHARACTERS, MAX_DEPTH = 2_000_000, 100  # of a label config
IGNORED = {
    "status": "ignored",
    "detail": "This backend does not train. Export the annotations as JSON, then: setrnn update "
    "MODEL EXPORT.json --out NEW",
}

router = APIRouter(route_class=JsonRoute, include_in_schema=False)


class Task(BaseModel):
    """A task: its data. Other fields are ignored, here and below, whatever they hold."""

    data: dict[str, Any]


class PredictRequest(BaseModel):
    """Tasks of one project, and its labeling interface."""

    tasks: list[Task] = Field(min_length=1)
    label_config: str


class SetupRequest(BaseModel):
    """The labeling interface of a project that connects the backend."""

    schema_: str = Field(default="", alias="schema")


@router.post("/predict")
async def predict(wanted: PredictRequest, request: Request) -> dict[str, Any]:
    """Predict the choices of each task, by the first model.

    The score of a prediction is the probability of the whole set.
    """
    model = service_of(request).registry.find(None)
    tag, limits = await asyncio.to_thread(_read_project, wanted.label_config, model)
    texts = [_text_of(task, tag, number) for number, task in enumerate(wanted.tasks)]
    # With limits, large sets may be scored, which takes seconds.
    work = Work(model.tag, (None, limits), may_be_slow=limits != NO_LIMITS)
    found = await process(request, model, work, texts, [()] * len(texts))
    version = {"model_version": _version(model)}
    results = [
        {
            "result": make_result(each.labels, tag.name, tag.to_name),
            "score": each.probability,
            **version,
        }
        for each in found
    ]
    return {"results": results, **version}


@router.post("/setup")
async def setup(wanted: SetupRequest, request: Request) -> dict[str, str]:
    """Check that the project has choices of the model, so that connecting it says what is wrong."""
    model = service_of(request).registry.find(None)
    if wanted.schema_:
        await asyncio.to_thread(_read_project, wanted.schema_, model)
    return {"model_version": _version(model)}


@router.post("/versions")
async def versions(wanted: dict[str, Any], request: Request) -> dict[str, list[str]]:
    """List the version of the model."""
    return {"versions": [_version(service_of(request).registry.find(None))]}


@router.post("/train")
@router.post("/webhook")
async def ignore(wanted: dict[str, Any], request: Request) -> dict[str, str]:
    """Take note of an event, and do nothing: annotations are exported and trained on by hand."""
    return IGNORED


@router.get(HEALTH)
async def health(request: Request) -> dict[str, str]:
    """Report that the backend is up, once its models are loaded."""
    service_of(request).registry.find(None)
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


def _read_project(config: str, model: ServedModel) -> tuple[ChoicesTag, Limits]:
    """Return the tag to answer, and limits that keep predictions within its choices.

    A set need not be closed if that would keep choices out: those with a label above them that the
    project lacks, or, if only one may be chosen, all that are below another.
    """
    labels, tree = model.tagger.labels, model.tagger.hierarchy
    tag = choose_tag(config, labels.index)
    known = set(tag.choices)
    lacking = tuple(each for each in labels.names if each not in known) if known else ()
    if len(lacking) == len(labels):
        raise DataError(
            f"None of the choices of '{shorten(tag.name)}' is a label of the model. GET "
            "/label-config returns an interface with its labels."
        )
    above = set() if tree is None else {name for each in known for name in tree.ancestors(each)}
    opens = tag.is_single or not above.isdisjoint(lacking)
    return tag, Limits(
        max_labels=1 if tag.is_single else None,
        forbidden=lacking,
        closed=False if tree is not None and opens else None,
    )


def _version(model: ServedModel) -> str:
    return f"{model.name}-{model.version}"


@dataclass
class ChoicesTag:
    """A tag of choices, and the text that it is about."""

    name: str
    to_name: str
    is_single: bool
    choices: list[str] = field(default_factory=list)  # empty if a task brings its own
    text_field: str = ""


def choose_tag(config: str, labels: Collection[str]) -> ChoicesTag:
    """Return the first tag of choices about a text with the most labels of the model.

    A document type is refused, and with it every entity. The time is linear in the characters.

    Example:
        >>> tag = choose_tag(
        ...     '<View><Text name="t" value="$body"/><Choices name="c" toName="t" '
        ...     'choice="multiple"><Choice value="A"/></Choices></View>',
        ...     ["A"],
        ... )
        >>> tag.name, tag.to_name, tag.text_field, tag.choices, tag.is_single
        ('c', 't', 'body', ['A'], False)
    """
    if len(config) > MAX_CHARACTERS:
        raise DataError(f"The label config has more than {MAX_CHARACTERS:,} characters.")
    fields: dict[str, str] = {}  # of the task's data, by the name of the text that shows it
    tags: list[ChoicesTag] = []
    path: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        path.append(tag)
        if len(path) > MAX_DEPTH:
            raise DataError(f"The label config has more than {MAX_DEPTH} tags inside one another.")
        name, value = attributes.get("name", ""), attributes.get("value", "")
        if tag == "Text" and attributes.get("valueType", "text") == "text":
            fields[name] = value[1:] if value.startswith("$") else ""
        elif tag == "Choices":
            is_single = attributes.get("choice", "single") in ("single", "single-radio")
            tags.append(ChoicesTag(name, attributes.get("toName", ""), is_single))
        elif tag == "Choice" and "Choices" in path:
            tags[-1].choices.append(attributes.get("alias") or value)

    def refuse(*_: object) -> None:
        raise DataError("The label config must not have a document type.")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: path.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(config.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise DataError(
            f"The label config is not XML (line {error.lineno}): the project's labeling interface "
            "is expected."
        ) from None
    for each in tags:
        each.text_field = fields.get(each.to_name, "")
    about_texts = [each for each in tags if each.text_field]
    if not about_texts:
        raise DataError(
            'The label config has no <Choices> for a <Text value="$...">: setrnn tags texts with '
            "choices. GET /label-config returns an interface that fits."
        )
    return max(about_texts, key=lambda tag: sum(each in labels for each in tag.choices))
