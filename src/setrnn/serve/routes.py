"""The routes of the API: requests checked, queued, and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from setrnn.data.example import KnownLabels
from setrnn.errors import DataError
from setrnn.serve import answers
from setrnn.serve.access_log import CLIENT_GONE
from setrnn.serve.batching import Batcher, QueueFullError, Work
from setrnn.serve.metrics import CONTENT_TYPE, Metrics
from setrnn.serve.problems import ProblemError
from setrnn.serve.registry import NotReadyError, Registry, ServedModel
from setrnn.serve.schemas import (
    LONGEST_NAME,
    CompleteRequest,
    ExplainRequest,
    Health,
    LabelsAnswer,
    ModelsAnswer,
    TagRequest,
)
from setrnn.serve.sending import sent
from setrnn.serve.settings import ServeSettings
from setrnn.serve.work import Completing, Explaining, Tagging
from setrnn.systems.rules import Limits
from setrnn.tagging.explanation import given_set
from setrnn.tagging.prediction import problem_with_known

RETRY_SECONDS = 2  # while models are loaded
VERSION_HEADER = "X-Model-Version"
CHARACTERS_A_WORD = 32  # of writing without spaces, which would be one word

router = APIRouter()
Answer = Callable[[Sequence[Any]], BaseModel]  # from results


@dataclass(frozen=True)
class Service:
    """What the routes work with."""

    registry: Registry
    settings: ServeSettings
    metrics: Metrics
    batchers: Mapping[str, Batcher]

    def model(self, name: str | None) -> ServedModel:
        """Return a model by its name, or the default one."""
        try:
            return self.registry.find(name)
        except NotReadyError:
            refuse_unready()


async def tag(request: Request) -> Response:
    """Predict a label set for each text."""
    service = _service(request)
    most = service.settings.max_texts
    wanted = await sent(request, TagRequest, {"texts": most, "features": most})
    model = service.model(wanted.model)
    _check_words(service.settings, wanted.texts)
    limits = Limits(
        min_labels=wanted.min_labels or 0,
        max_labels=wanted.max_labels,
        required=wanted.require,
        forbidden=wanted.forbid,
    )
    rule = model.tagger.rule_or_own(wanted.rule)
    if limits != Limits():  # among many labels or seen sets it takes a while
        await asyncio.to_thread(model.tagger.known_limits, limits)
    features = [()] * len(wanted.texts) if wanted.features is None else wanted.features
    if len(features) != len(wanted.texts):
        raise DataError(
            f"There are {len(wanted.texts)} texts but {len(features)} rows of features."
        )
    work = Tagging(model, rule, wanted.top, limits, wanted.calibrated, wanted.marginals)
    documents = list(zip(wanted.texts, features, strict=True))
    return await _answered(
        request, model, work, documents, lambda found: answers.tagged(model, rule, found)
    )


async def complete(request: Request) -> Response:
    """Find the rest of a text's labels, when some are known to be right or wrong."""
    service = _service(request)
    wanted = await sent(request, CompleteRequest)
    model = service.model(wanted.model)
    _check_words(service.settings, [wanted.text])
    known = KnownLabels(tuple(dict.fromkeys(wanted.present)), tuple(dict.fromkeys(wanted.absent)))
    if known != KnownLabels():
        tagger = model.tagger
        problem = await asyncio.to_thread(
            problem_with_known, tagger.labels, known.present, known.absent, tagger.max_labels
        )
        if problem is not None:
            raise DataError(problem[0].upper() + problem[1:])
    document = ((wanted.text, wanted.features or ()), known)
    return await _answered(
        request,
        model,
        Completing(model, wanted.top),
        [document],
        lambda found: answers.completed(model, found[0]),
    )


async def explain(request: Request) -> Response:
    """Show why a text is tagged as it is: sequences, sets, and the words attended to."""
    service = _service(request)
    wanted = await sent(request, ExplainRequest)
    model = service.model(wanted.model)
    _check_words(service.settings, [wanted.text])
    rule = model.tagger.explained_rule(wanted.rule, wanted.labels)
    if wanted.labels is not None:  # among many labels it takes a while
        tagger = model.tagger
        await asyncio.to_thread(given_set, tagger.labels, wanted.labels, tagger.max_labels)
    return await _answered(
        request,
        model,
        Explaining(model, rule, wanted.top, wanted.labels),
        [(wanted.text, wanted.features or ())],
        lambda found: answers.explained(model, found[0]),
    )


@router.get("/v1/models")
async def models(request: Request) -> ModelsAnswer:
    """List the models."""
    service = _service(request)
    try:
        return answers.listed(service.registry.models, service.settings)
    except NotReadyError:
        refuse_unready()


@router.get("/v1/labels")
async def labels(
    request: Request,
    response: Response,
    prefix: Annotated[
        str,
        Query(max_length=LONGEST_NAME, description="What a label, or a word in it, begins with."),
    ] = "",
    limit: Annotated[int, Query(ge=1, le=1_000, description="Labels to give.")] = 20,
    model: Annotated[str | None, Query(max_length=LONGEST_NAME, description="A model.")] = None,
) -> LabelsAnswer:
    """Search a model's labels."""
    found = _service(request).model(model or None)
    response.headers[VERSION_HEADER] = found.version
    return answers.searched(found, prefix, limit)


@router.get("/healthz")
async def health(request: Request) -> Health:
    """Tell that the service runs."""
    return Health(status="ok")


@router.get("/readyz")
async def ready(request: Request) -> Health:
    """Tell whether the models are loaded."""
    if not _service(request).registry.is_ready:
        refuse_unready()
    return Health(status="ready")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Give counts and times to Prometheus."""
    return Response(_service(request).metrics.page(), headers={"Content-Type": CONTENT_TYPE})


# Beside FastAPI, which takes as long for a request as all the rest of it: see `openapi`.
POSTS = {"/v1/tag": tag, "/v1/complete": complete, "/v1/explain": explain}


def refuse_unready() -> NoReturn:
    """Say that the models are still being loaded."""
    raise ProblemError(
        "not-ready",
        "The models are being loaded. Try again after the seconds in the header Retry-After.",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )


def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


async def _answered(
    request: Request, model: ServedModel, work: Work, documents: Sequence[Any], answer: Answer
) -> Response:
    """Queue documents, wait for their results or for the client to leave, and answer."""
    service = _service(request)
    try:
        results = service.batchers[model.name].submit(work, documents)
    except QueueFullError as full:
        service.metrics.refused.labels(model.name).inc()
        raise ProblemError(
            "queue-full",
            "Too much is waiting. Try again after the seconds in the header Retry-After.",
            headers={"Retry-After": str(full.retry_after)},
        ) from None
    watch = asyncio.create_task(_cancel_when_gone(request, results))
    try:
        found = await results
    except asyncio.CancelledError:
        if watch.done() and not watch.cancelled():
            return Response(status_code=CLIENT_GONE)
        raise ProblemError(
            "stopping", "Ask again when it is back.", headers={"Retry-After": str(RETRY_SECONDS)}
        ) from None
    finally:
        watch.cancel()
    return Response(
        answer(found).model_dump_json(),
        headers={VERSION_HEADER: model.version},
        media_type="application/json",
    )


async def _cancel_when_gone(request: Request, results: asyncio.Future[Any]) -> None:
    """Drop the work for a client that has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    results.cancel()


def _check_words(settings: ServeSettings, texts: Sequence[str]) -> None:
    """Refuse texts of too many words, by their number only."""
    most = settings.max_words
    for number, text in enumerate(texts):
        if len(text) <= 2 * most:  # a word and a space each
            continue
        n_words = max(len(text.split()), len(text) // CHARACTERS_A_WORD)
        if n_words > most:
            raise ProblemError(
                "invalid",
                f"A text may have {most:,} words, and text {number} has {n_words:,}. Send the "
                "beginning: a model reads no further.",
            )
