"""The routes of the API: each validates a request, queues it for the library, and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from setrnn.data.example import KnownLabels
from setrnn.serve.answers import (
    AcceptedFrom,
    AcceptedLabels,
    CompleteAnswer,
    CountedLabel,
    ExplainAnswer,
    Health,
    HierarchyAnswer,
    HierarchyCard,
    LabelInTree,
    LabelsAnswer,
    ModelCard,
    ModelsAnswer,
    RequestLimits,
    TagAnswer,
)
from setrnn.serve.batching import Batcher, QueueFullError, Work
from setrnn.serve.json_route import VERSION_HEADER, JsonRoute
from setrnn.serve.observation import Metrics
from setrnn.serve.problems import KINDS, MEDIA_TYPE, ProblemError
from setrnn.serve.registry import RETRY_SECONDS, Registry, ServedModel
from setrnn.serve.requests import MAX_NAME, CompleteRequest, ExplainRequest, TagRequest
from setrnn.serve.settings import ServeSettings
from setrnn.serve.work import Completing, Explaining, Tagging
from setrnn.systems.limits import Limits
from setrnn.systems.order_free import OrderFreeSystem
from setrnn.systems.rules import find_rule
from setrnn.tagging.explain.explain import choose_explained_rule, why_not_explained

CHARACTERS_PER_WORD = 32  # in a text without spaces, which would be one word
# Texts times squared labels: set-rnn-exact scores a set of n labels in a time that grows with n^2.
MAX_SCORED_LABELS = 64 * 16**2
ModelQuery = Annotated[
    str | None, Query(max_length=MAX_NAME, description="The model's name; empty: the first.")
]


@dataclass
class Service:
    """What the routes use."""

    registry: Registry
    settings: ServeSettings
    metrics: Metrics
    batchers: Mapping[str, Batcher]
    n_held: int = 0  # bytes of the bodies of all current requests


def describe_problems(*kinds: str) -> dict[int | str, Any]:
    """Return the OpenAPI responses for kinds of problems."""
    found: dict[int | str, Any] = {}
    for kind in kinds:
        status, title = KINDS[kind]
        schema = {"$ref": "#/components/schemas/Problem"}
        found[status] = {"description": title, "content": {MEDIA_TYPE: {"schema": schema}}}
        if status == 503:
            retry = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
            found[status]["headers"] = {"Retry-After": retry}
    return found


_VERSION: dict[int | str, Any] = {
    200: {
        "headers": {
            VERSION_HEADER: {"description": "The model's version.", "schema": {"type": "string"}}
        }
    }
}
_OF_POSTS = _VERSION | describe_problems(
    "bad-json", "body-too-large", "not-json-type", "invalid", "queue-full"
)

router = APIRouter(generate_unique_id_function=lambda route: route.name)
posts = APIRouter(route_class=JsonRoute, generate_unique_id_function=lambda route: route.name)


@posts.post("/v1/tag", responses=_OF_POSTS)
async def tag(wanted: TagRequest, request: Request) -> TagAnswer:
    """Predict a label set for each text."""
    service = service_of(request)
    model = service.registry.find(wanted.model)
    check_texts(service.settings, wanted.texts)
    limits = Limits(
        min_labels=wanted.min_labels or 0,
        max_labels=wanted.max_labels,
        required=wanted.require,
        forbidden=wanted.forbid,
        closed=wanted.closed,
    )
    rule = model.tagger.rule_or_own(wanted.rule)
    _check_cost(model, rule, limits, len(wanted.texts))
    features = wanted.features or [[]] * len(wanted.texts)
    work = Tagging(model, rule, wanted.top, limits, wanted.calibrated, wanted.marginals)
    documents = list(zip(wanted.texts, features, strict=True))
    found = await process(request, model, work, documents)
    return TagAnswer(model.answering, rule, found)


@posts.post("/v1/complete", responses=_OF_POSTS)
async def complete(wanted: CompleteRequest, request: Request) -> CompleteAnswer:
    """Predict the remaining labels of a text when some are known to be right or wrong."""
    service = service_of(request)
    model = service.registry.find(wanted.model)
    check_texts(service.settings, [wanted.text])
    known = KnownLabels(tuple(wanted.present), tuple(wanted.absent))
    # Before it shares a batch, which would be done again one by one; slow with many labels.
    await asyncio.to_thread(model.tagger.check_known, known)
    document = ((wanted.text, wanted.features or ()), known)
    work = Completing(model, wanted.top)
    found: list[CompleteAnswer] = await process(request, model, work, [document])
    return found[0]


@posts.post("/v1/explain", responses=_OF_POSTS)
async def explain(wanted: ExplainRequest, request: Request) -> ExplainAnswer:
    """Explain the labels of a text: its words, and the sequences and sets of labels."""
    service = service_of(request)
    model = service.registry.find(wanted.model)
    check_texts(service.settings, [wanted.text])
    rule = choose_explained_rule(model.tagger, wanted.rule, wanted.labels)
    work = Explaining(model, rule, wanted.top, wanted.labels)
    document = (wanted.text, wanted.features or ())
    found: list[ExplainAnswer] = await process(request, model, work, [document])
    return found[0]


@router.get("/v1/models", responses=describe_problems("not-ready"))
async def models(request: Request) -> ModelsAnswer:
    """List the models and the limits of a request."""
    service = service_of(request)
    limits, default = service.settings, service.registry.find(None)
    return ModelsAnswer(
        [_card(each, each is default) for each in service.registry.models.values()],
        RequestLimits(limits.max_texts, limits.max_words, limits.max_body_bytes),
    )


def _card(model: ServedModel, is_default: bool) -> ModelCard:
    tagger = model.tagger
    calibration, of_labels, data = (
        tagger.calibration,
        tagger.label_acceptance,
        tagger.notes.get("data"),
    )
    hierarchy = None
    if tagger.hierarchy is not None:
        n_below = int((tagger.closure.above >= 0).any(axis=1).sum())
        hierarchy = HierarchyCard(tagger.keeps_closed, n_below)
    return ModelCard(
        **vars(model.answering),
        is_default=is_default,
        n_labels=len(tagger.labels),
        rules=tagger.rules,
        own_rule=tagger.rule_or_own(None),
        can_explain=why_not_explained(tagger) is None,
        is_calibrated=calibration is not None and bool(calibration.scalings),
        accepts={
            rule: AcceptedFrom(each.target, each.threshold)
            for rule, each in (calibration.acceptance.items() if calibration else ())
        },
        accepts_labels=AcceptedLabels(of_labels.target, of_labels.n_safe) if of_labels else None,
        data=None if data is None else str(data),
        hierarchy=hierarchy,
    )


@router.get("/v1/labels", responses=_VERSION | describe_problems("invalid", "not-ready"))
async def labels(
    request: Request,
    response: Response,
    prefix: Annotated[
        str, Query(max_length=MAX_NAME, description="The start of a label or of a word in it.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=1_000, description="The most labels to return.")] = 20,
    model: ModelQuery = None,
) -> LabelsAnswer:
    """Search the labels of a model."""
    found = service_of(request).registry.find(model or None)
    response.headers[VERSION_HEADER] = found.version
    matching, known = found.find_labels(prefix), found.tagger.labels
    return LabelsAnswer(
        [CountedLabel(known.names[each], int(known.counts[each])) for each in matching[:limit]],
        len(matching),
    )


@router.get("/v1/hierarchy", responses=_VERSION | describe_problems("invalid", "not-ready"))
async def hierarchy(
    request: Request,
    response: Response,
    limit: Annotated[
        int, Query(ge=1, le=100_000, description="The most labels to return.")
    ] = 10_000,
    model: ModelQuery = None,
) -> HierarchyAnswer:
    """List the labels of a model with their parents; without any if it has no hierarchy."""
    found = service_of(request).registry.find(model or None)
    response.headers[VERSION_HEADER] = found.version
    return await asyncio.to_thread(_list_hierarchy, found, limit)


def _list_hierarchy(model: ServedModel, limit: int) -> HierarchyAnswer:
    tagger, known = model.tagger, model.tagger.labels
    order = sorted(range(len(known)), key=lambda label: -known.counts[label])

    def list_parents(label: int) -> tuple[str, ...]:
        if tagger.hierarchy is None:
            return ()
        return tuple(known.names[each] for each in tagger.closure.parents(label))

    labels = [
        LabelInTree(known.names[label], int(known.counts[label]), list_parents(label))
        for label in order[:limit]
    ]
    return HierarchyAnswer(tagger.keeps_closed, labels, len(known))


@router.get("/healthz")
async def health(request: Request) -> Health:
    """Report that the service runs."""
    return Health(status="ok")


@router.get("/readyz", responses=describe_problems("not-ready"))
async def ready(request: Request) -> Health:
    """Report whether the models are loaded."""
    service_of(request).registry.find(None)
    return Health(status="ready")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Return counts and times for Prometheus."""
    page = generate_latest(service_of(request).metrics.registry)
    return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})


def service_of(request: Request) -> Service:
    """Return what the routes use."""
    return cast(Service, request.app.state.service)


async def process(
    request: Request, model: ServedModel, work: Work, documents: Sequence[Any]
) -> Any:  # noqa: ANN401 (what the work returns, one per document)
    """Queue documents and wait for their results, or for the client to disconnect."""
    service = service_of(request)
    try:
        results = service.batchers[model.name].submit(work, documents)
    except QueueFullError as full:
        service.metrics.refused.labels(model.name).inc()
        raise ProblemError(
            "queue-full",
            "The queue is full. Try again after the seconds in the header Retry-After.",
            headers={"Retry-After": str(full.retry_after)},
        ) from None
    watch = asyncio.create_task(_cancel_when_gone(request, results))
    try:
        return await results
    except asyncio.CancelledError:
        if watch.done() and not watch.cancelled():
            raise ClientDisconnect from None
        raise ProblemError(
            "stopping",
            "Try again when the service runs again.",
            headers={"Retry-After": str(RETRY_SECONDS)},
        ) from None
    finally:
        watch.cancel()


async def _cancel_when_gone(request: Request, results: asyncio.Future[Any]) -> None:
    """Drop the work of a client that has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    results.cancel()


def check_texts(settings: ServeSettings, texts: Sequence[str]) -> None:
    """Refuse too many texts, and texts of too many words."""
    if len(texts) > settings.max_texts:
        raise ProblemError(
            "invalid",
            f"#/texts: A request may have {settings.max_texts:,} texts, got {len(texts):,}.",
        )
    limit = settings.max_words
    for number, text in enumerate(texts):
        if len(text) <= 2 * limit:  # a word and a space each
            continue
        n_words = max(len(text.split()), len(text) // CHARACTERS_PER_WORD)
        if n_words > limit:
            raise ProblemError(
                "invalid",
                f"A text may have {limit:,} words, but text {number} has {n_words:,}. Send its "
                "beginning, or raise --max-words if the model reads more.",
            )


def _check_cost(model: ServedModel, rule: str, limits: Limits, n_texts: int) -> None:
    """Refuse many texts with large sets if each set is scored by a sum over its subsets."""
    n_labels = max(limits.min_labels, len(limits.required), 1)
    most = max(MAX_SCORED_LABELS // n_labels**2, 1)
    if n_texts <= most or not find_rule(rule).needs_best_only:
        return
    systems = [each.system for each in (model.tagger, *model.tagger.members)]
    if any(isinstance(each, OrderFreeSystem) for each in systems):
        raise ProblemError(
            "invalid",
            f"#/texts: With rule '{rule}' and sets of {n_labels} labels or more, a request to this "
            f"model may have {most} texts, got {n_texts}. Send fewer texts per request, require "
            "fewer labels, or choose rule 'f1'.",
        )
