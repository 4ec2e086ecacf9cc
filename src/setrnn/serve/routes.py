"""The routes of the API: each reads a request within limits, queues its work, and answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_type_hints

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from setrnn.data.example import KnownLabels
from setrnn.serve.batching import Batcher, Work
from setrnn.serve.guard import CLIENT_GONE, Metrics
from setrnn.serve.problems import ERRORS, ProblemError, invalid_request
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.schema import (
    MAX_NAME,
    CompleteAnswer,
    CompleteRequest,
    ExplainAnswer,
    ExplainRequest,
    LabelsAnswer,
    ModelsAnswer,
    RequestLimits,
    TagAnswer,
    TagRequest,
)
from setrnn.serve.settings import ServeSettings
from setrnn.systems.limits import Limits
from setrnn.tagging.explain import choose_explained_rule

CHARACTERS_PER_WORD = 32  # in a text without spaces, which would be one word
NO_LIMITS = Limits()
HELD_BODIES = 16  # bodies of the largest size that all current requests may hold together
SMALL_BODY = 64 << 10  # bytes; small bodies are read even while large ones fill the memory limit
# Half of an emoji, or what only looks like it: an escaped backslash, or both halves.
_HALF_EMOJI = re.compile(
    rb"\\(?:(\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|"
    rb"u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


@dataclass
class Service:
    """What the routes use."""

    registry: Registry
    settings: ServeSettings
    metrics: Metrics
    batchers: Mapping[str, Batcher]
    n_held: int = 0  # bytes of the bodies of all current requests


class JsonRoute(APIRoute):
    """A route of a function; one of `(wanted, request)` gets the body as `wanted`.

    FastAPI describes the route by the types of the function. A body is read, and its answer
    written, by these types too; what FastAPI does besides, for routes of other kinds, takes as long
    as all the rest of a small request.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        types, answer = get_type_hints(self.endpoint, include_extras=True), self.endpoint
        if "wanted" not in types:
            return super().get_route_handler()
        to_read, to_write = TypeAdapter[Any](types["wanted"]), TypeAdapter[Any](types["return"])

        async def handle(request: Request) -> Response:
            service, body = service_of(request), bytearray()
            try:
                await _read(request, service, body)
                found = await answer(_parse(to_read, body, service.settings.max_nested), request)
            except ClientDisconnect:
                return Response(status_code=CLIENT_GONE)
            finally:
                service.n_held -= len(body)
            return Response(to_write.dump_json(found), media_type="application/json")

        return handle


async def _read(request: Request, service: Service, body: bytearray) -> None:
    """Read a body within the limits of one, and of all that are read."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" or "content-encoding" in request.headers:
        # Pages of other sites may not send this type, so that they cannot use the service.
        raise ProblemError(
            "not-json-type", "Send plain JSON with the header Content-Type: application/json."
        )
    limit = service.settings.max_body_bytes
    too_large = ProblemError(
        "body-too-large", f"A body may have {limit:,} bytes. Send fewer texts per request."
    )
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise too_large
    small = min(SMALL_BODY, limit // HELD_BODIES)
    async for part in request.stream():
        body += part
        service.n_held += len(part)
        if len(body) > limit:
            raise too_large
        if len(body) > small and service.n_held > HELD_BODIES * limit:
            raise ProblemError("queue-full", "Too many requests at once.")


def _parse(kind: TypeAdapter[Any], body: bytearray, max_nested: int) -> Any:  # noqa: ANN401
    """Return a request, or raise what is wrong with its body."""
    if len(body) > max_nested and (n_nested := count_nested(body)) > max_nested:
        raise ProblemError(
            "invalid",
            f"#/: A request may have {max_nested:,} fields, lists and objects, got {n_nested:,}.",
        )
    # Escapes of unpaired surrogates become question marks, as encoders write them.
    plain = _HALF_EMOJI.sub(lambda found: found[0] if found[1] else b"?", body)
    try:
        return kind.validate_json(plain)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    raise invalid_request(found, "#/")  # outside of the block: the error holds the body


def count_nested(body: bytes | bytearray) -> int:
    """Count the fields, lists and objects in JSON: many of them take seconds to parse.

    Example:
        >>> count_nested(b'{"texts": ["a, [b]: {c}"], "top": 2}')
        4
    """
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")  # without escaped quotes
    marks = np.frombuffer(plain, dtype=np.uint8)
    is_inside = np.cumsum(marks == ord('"'), dtype=np.uint8) & 1  # a string; may wrap at 256
    return sum(map(marks[is_inside == 0].tobytes().count, b":[{"))


router = APIRouter(
    route_class=JsonRoute,
    generate_unique_id_function=lambda route: route.name,
    responses=ERRORS,
)


@router.post("/v1/tag")
async def tag(wanted: TagRequest, request: Request) -> TagAnswer:
    """Predict a label set for each text."""
    model = service_of(request).registry.find(wanted.model)
    limits = wanted.limits()
    rule = model.tagger.rule_or_own(wanted.rule)
    options = (wanted.rule, limits, wanted.top, wanted.calibrated, wanted.marginals)
    # With limits, large sets may be scored, which takes seconds.
    work = Work(model.tag, options, may_be_slow=limits != NO_LIMITS)
    n_texts, features = len(wanted.texts), wanted.features
    if features is None:
        features = [[]] * n_texts
    elif len(features) != n_texts:
        said = f"#/features: There are {n_texts:,} texts but {len(features):,} rows of features."
        raise ProblemError("invalid", said)
    found = await process(request, model, work, wanted.texts, features)
    return TagAnswer(model.answering, rule, found)


@router.post("/v1/complete")
async def complete(wanted: CompleteRequest, request: Request) -> CompleteAnswer:
    """Predict the remaining labels of a text when some are known to be right or wrong."""
    model = service_of(request).registry.find(wanted.model)
    known = KnownLabels(tuple(wanted.present), tuple(wanted.absent))
    # Before it shares a batch, which would be done again one by one; slow with many labels.
    await asyncio.to_thread(model.tagger.check_known, known)
    work = Work(model.complete, (wanted.top,))
    found = await process(request, model, work, [wanted.text], [wanted.features or ()], [known])
    return cast(CompleteAnswer, found[0])


@router.post("/v1/explain")
async def explain(wanted: ExplainRequest, request: Request) -> ExplainAnswer:
    """Explain the labels of a text: its words, and the sequences and sets of labels."""
    model = service_of(request).registry.find(wanted.model)
    limits = wanted.limits()
    choose_explained_rule(model.tagger, wanted.rule, wanted.labels, limits)  # before it is queued
    labels = None if wanted.labels is None else tuple(wanted.labels)
    work = Work(model.explain, (wanted.rule, labels, limits, wanted.top), may_be_slow=True)
    found = await process(request, model, work, [wanted.text], [wanted.features or ()])
    return cast(ExplainAnswer, found[0])


@router.get("/v1/models")
async def models(request: Request) -> ModelsAnswer:
    """List the models and the limits of a request."""
    service = service_of(request)
    limits = service.settings
    return ModelsAnswer(
        [each.describe() for each in service.registry.models.values()],
        RequestLimits(limits.max_texts, limits.max_words, limits.max_body_bytes),
    )


@router.get("/v1/labels")
def labels(  # in a thread: there may be 100,000 labels
    request: Request,
    model: Annotated[
        str | None, Query(max_length=MAX_NAME, description="The model's name; empty: the first.")
    ] = None,
    prefix: Annotated[
        str, Query(max_length=MAX_NAME, description="The start of a label or of a word in it.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=100_000, description="The most labels to return.")] = 20,
) -> LabelsAnswer:
    """List the labels of a model, or search them: the most frequent first."""
    return service_of(request).registry.find(model or None).list_labels(prefix, limit)


@router.get("/healthz")
async def health(request: Request) -> dict[str, str]:
    """Report that the service runs."""
    return {"status": "ok"}


@router.get("/readyz")
async def ready(request: Request) -> dict[str, str]:
    """Report whether the models are loaded."""
    service_of(request).registry.find(None)
    return {"status": "ready"}


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
    request: Request,
    model: ServedModel,
    work: Work,
    texts: Sequence[str],
    *others: Sequence[Any],
) -> Any:  # noqa: ANN401 (what the work returns, one per document)
    """Queue documents and wait for their results, or for the client to disconnect.

    A document is a text and one value of each of `others`: its features, its known labels.
    """
    service = service_of(request)
    _check_texts(service.settings, texts)
    documents = list(zip(texts, *others, strict=True))
    results = service.batchers[model.name].submit(work, documents)
    watch = asyncio.create_task(_cancel_when_gone(request, results))
    try:
        return await results
    except asyncio.CancelledError:
        if watch.done() and not watch.cancelled():
            raise ClientDisconnect from None
        raise ProblemError("stopping", "The service is being stopped.") from None
    finally:
        watch.cancel()


async def _cancel_when_gone(request: Request, results: asyncio.Future[Any]) -> None:
    """Drop the work of a client that has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    results.cancel()


def _check_texts(settings: ServeSettings, texts: Sequence[str]) -> None:
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
