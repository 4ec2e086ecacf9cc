"""A machine learning backend of Label Studio: its routes, and how it reads a project."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from setrnn.data.read.label_studio import make_result, write_label_config
from setrnn.errors import DataError
from setrnn.serve.json_route import JsonRoute
from setrnn.serve.problems import ProblemError, shorten
from setrnn.serve.registry import ServedModel
from setrnn.serve.requests import MAX_NAME
from setrnn.serve.routes import check_texts, process, service_of
from setrnn.serve.work import Tagging
from setrnn.systems.limits import Limits

HEALTH = "/health"
SINGLE = ("single", "single-radio")
MAX_CHARACTERS, MAX_DEPTH = 2_000_000, 100  # of a label config
IGNORED = {
    "status": "ignored",
    "detail": "This backend does not train. Export the annotations as JSON, then: setrnn update "
    "MODEL EXPORT.json --out NEW",
}

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
    label_config: str


class SetupRequest(_Asked):
    """The labeling interface of a project that connects the backend."""

    schema_: str = Field(default="", alias="schema")


class AnyRequest(_Asked):
    """An event or a request to train."""


@posts.post("/predict")
async def predict(wanted: PredictRequest, request: Request) -> dict[str, Any]:
    """Predict the choices of each task, by the first model.

    The score of a prediction is the probability of the whole set.
    """
    service = service_of(request)
    model = service.registry.find(None)
    tag, limits = await asyncio.to_thread(_read_project, wanted.label_config, model)
    texts = [_text_of(task, tag, number) for number, task in enumerate(wanted.tasks)]
    check_texts(service.settings, texts)
    work = Tagging(model, model.tagger.rule_or_own(None), limits=limits)
    found = await process(request, model, work, [(text, ()) for text in texts])
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


@posts.post("/setup")
async def setup(wanted: SetupRequest, request: Request) -> dict[str, str]:
    """Check that the project has choices of the model, so that connecting it says what is wrong."""
    model = service_of(request).registry.find(None)
    if wanted.schema_:
        await asyncio.to_thread(_read_project, wanted.schema_, model)
    return {"model_version": _version(model)}


@posts.post("/versions")
async def versions(wanted: AnyRequest, request: Request) -> dict[str, list[str]]:
    """List the version of the model."""
    return {"versions": [_version(service_of(request).registry.find(None))]}


@posts.post("/train")
@posts.post("/webhook")
async def ignore(wanted: AnyRequest, request: Request) -> dict[str, str]:
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
    return f"{model.name}-{model.version}"[:MAX_NAME]


@dataclass
class ChoicesTag:
    """A tag of choices, and the text that it is about."""

    name: str
    to_name: str
    is_single: bool
    choices: list[str] = field(default_factory=list)  # empty if a task brings its own
    text_field: str = ""


def find_choices(config: str) -> list[ChoicesTag]:
    """Return the tags of choices about a text, in the order of the interface.

    A document type is refused, and with it every entity. The time is linear in the characters.

    Example:
        >>> (tag,) = find_choices(
        ...     '<View><Text name="t" value="$body"/><Choices name="c" toName="t" '
        ...     'choice="multiple"><Choice value="A"/></Choices></View>'
        ... )
        >>> tag.name, tag.to_name, tag.text_field, tag.choices, tag.is_single
        ('c', 't', 'body', ['A'], False)
    """
    if len(config) > MAX_CHARACTERS:
        raise DataError(f"The label config has more than {MAX_CHARACTERS:,} characters.")
    texts: dict[str, str] = {}
    tags: list[ChoicesTag] = []
    path: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        path.append(tag)
        if len(path) > MAX_DEPTH:
            raise DataError(f"The label config has more than {MAX_DEPTH} tags inside one another.")
        if tag == "Text" and attributes.get("valueType", "text") == "text":
            texts[attributes.get("name", "")] = attributes.get("value", "")
        elif tag == "Choices":
            is_single = attributes.get("choice", "single") in SINGLE
            names = attributes.get("name", ""), attributes.get("toName", "")
            tags.append(ChoicesTag(*names, is_single))
        elif tag == "Choice" and "Choices" in path and tags:
            tags[-1].choices.append(attributes.get("alias") or attributes.get("value", ""))

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
        value = texts.get(each.to_name, "")
        each.text_field = value[1:] if value.startswith("$") else ""
    return [each for each in tags if each.text_field]


def choose_tag(config: str, labels: Collection[str]) -> ChoicesTag:
    """Return the first tag with the most choices that are labels of the model."""
    tags = find_choices(config)
    if not tags:
        raise DataError(
            'The label config has no <Choices> for a <Text value="$...">: setrnn tags texts with '
            "choices. GET /label-config returns an interface that fits."
        )
    return max(tags, key=lambda tag: sum(each in labels for each in tag.choices))
