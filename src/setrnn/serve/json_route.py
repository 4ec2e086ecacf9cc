"""Routes that read one JSON object within limits and answer with another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from setrnn.serve.observation import CLIENT_GONE
from setrnn.serve.problems import ProblemError

if TYPE_CHECKING:
    from setrnn.serve.routes import Service

VERSION_HEADER = "X-Model-Version"
HELD_BODIES = 16  # bodies of the largest size that all current requests may hold together
SMALL_BODY = 64 << 10  # bytes; small bodies are read even while large ones fill the memory limit
COUNTED_BODY = 64 << 10  # bytes; the values of smaller bodies are not counted, they are few
_TOO_MANY_BODIES = ProblemError(
    "queue-full",
    "Too many requests at once. Try again after the seconds in the header Retry-After.",
    headers={"Retry-After": "1"},
)


class JsonRoute(APIRoute):
    """A route of a function `(wanted, request)`; an answer with a model names it in a header.

    FastAPI describes the route by the types of the function. A request is read, and its answer
    written, by these types too; what FastAPI does besides, for routes of other kinds, takes as long
    as all the rest of a small request.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        types, answer = get_type_hints(self.endpoint), self.endpoint
        to_read = TypeAdapter[Any](types["wanted"])
        to_write = TypeAdapter[Any](get_type_hints(self.endpoint, include_extras=True)["return"])

        async def handle(request: Request) -> Response:
            service: Service = request.app.state.service
            body = bytearray()
            try:
                await _read(request, service, body)
                if len(body) > COUNTED_BODY:
                    await _check_values(service, bytes(body))
                found = await answer(_validate(to_read, _parse(body)), request)
            except ClientDisconnect:
                return Response(status_code=CLIENT_GONE)
            finally:
                service.n_held -= len(body)
            model = getattr(found, "model", None)
            headers = {} if model is None else {VERSION_HEADER: model.version}
            return Response(to_write.dump_json(found), 200, headers, "application/json")

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
            raise _TOO_MANY_BODIES


async def _check_values(service: Service, body: bytes) -> None:
    """Refuse a body of many small values, which would take a second to parse."""
    async with service.counting:
        found = await asyncio.to_thread(count_values, body)
    for n_found, (kind, most) in zip(found, service.settings.max_counts.items(), strict=True):
        if n_found > most:
            raise ProblemError(
                "invalid", f"#/: A request may have {most:,} {kind}, got {n_found:,}."
            )


def count_values(body: bytes) -> tuple[int, int, int]:
    """Count the fields, the lists and objects, and all values in JSON, without parsing it.

    Example:
        >>> count_values(b'{"texts": ["a, [b]", "c"], "top": 2}')
        (2, 2, 5)
    """
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")  # without escaped quotes
    marks = np.frombuffer(plain, dtype=np.uint8)
    is_inside = np.cumsum(marks == ord('"'), dtype=np.uint8) & 1  # a string; may wrap at 256
    outside = marks[is_inside == 0].tobytes()
    n_lists = outside.count(b"[") + outside.count(b"{")
    return outside.count(b":"), n_lists, n_lists + outside.count(b",") + 1


def _parse(body: bytearray) -> Any:  # noqa: ANN401 (whatever was sent)
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        found = {"type": "json_invalid", "loc": ("body", error.pos), "msg": error.msg}
        raise RequestValidationError([found]) from None
    except (ValueError, RecursionError):  # not text, or nested too deeply
        raise HTTPException(400) from None


def _validate(kind: TypeAdapter[Any], values: Any) -> Any:  # noqa: ANN401 (whatever was sent)
    try:
        return kind.validate_python(values)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        errors = [{**each, "loc": ("body", *each["loc"])} for each in found]
    raise RequestValidationError(errors)
