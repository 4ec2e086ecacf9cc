"""The requests of the API: their fields, and how a body is read within limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import numpy as np
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from setrnn.serve.guard import CLIENT_GONE
from setrnn.serve.problems import ProblemError, invalid_request
from setrnn.systems.rules import RULES

if TYPE_CHECKING:
    from setrnn.serve.routes import Service

HELD_BODIES = 16  # bodies of the largest size that all current requests may hold together
SMALL_BODY = 64 << 10  # bytes; small bodies are read even while large ones fill the memory limit
# Half of an emoji, or what only looks like it: an escaped backslash, or both halves.
_HALF_EMOJI = re.compile(
    rb"\\(?:(\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|"
    rb"u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
MAX_TOP = 50  # that a request may ask for
MAX_LABELS = 1_000  # that a request may name
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


class TagRequest(_Request):
    """Texts to tag."""

    texts: list[str] = Field(min_length=1, fail_fast=True, description="The documents.")
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


class CompleteRequest(_DocumentRequest):
    """A text with some known labels."""

    present: Names = Field([], description="Labels known to be right.")
    absent: Names = Field([], description="Labels known to be wrong.")
    top: Top = Field(3, description="How many sets to return.")


class ExplainRequest(_DocumentRequest):
    """A text whose labels to explain."""

    rule: RuleName = None
    labels: Names | None = Field(
        None,
        description="The set to explain instead of the predicted one; [] is the empty set. Cannot "
        "be combined with a rule.",
    )
    top: Top = Field(12, description="How many sequences to return, at most the beam width.")


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
            service: Service = request.app.state.service
            body = bytearray()
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
