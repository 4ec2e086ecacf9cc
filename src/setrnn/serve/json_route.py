"""Routes that read one JSON object within limits and answer with another."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from setrnn.serve.observation import CLIENT_GONE
from setrnn.serve.problems import ProblemError

if TYPE_CHECKING:
    from setrnn.serve.routes import Service

VERSION_HEADER = "X-Model-Version"
HELD_BODIES = 16  # bodies of the largest size that all current requests may hold together
SMALL_BODY = 64 << 10  # bytes; small bodies are read even while large ones fill the memory limit
# Half of an emoji, or what only looks like it: an escaped backslash, or both halves.
_HALF_EMOJI = re.compile(
    rb"\\(?:(\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|"
    rb"u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


class JsonRoute(APIRoute):
    """A route of a function `(wanted, request)`; an answer with a model names it in a header.

    FastAPI describes the route by the types of the function. A request is read, and its answer
    written, by these types too; what FastAPI does besides, for routes of other kinds, takes as long
    as all the rest of a small request.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        types, answer = get_type_hints(self.endpoint, include_extras=True), self.endpoint
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
            raise ProblemError(
                "queue-full",
                "Too many requests at once. Try again after the seconds in the header Retry-After.",
                headers={"Retry-After": "1"},
            )


def _parse(kind: TypeAdapter[Any], body: bytearray, max_nested: int) -> Any:  # noqa: ANN401
    """Return a request, or raise what is wrong with its body."""
    if len(body) > max_nested and (n_nested := count_nested(body)) > max_nested:
        raise ProblemError(
            "invalid",
            f"#/: A request may have {max_nested:,} fields, lists and objects, got {n_nested:,}.",
        )
    try:
        return kind.validate_json(_replace_half_emoji(body))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        errors = [{**each, "loc": ("body", *each["loc"])} for each in found]
    raise RequestValidationError(errors)


def _replace_half_emoji(body: bytearray) -> bytes:
    """Replace escapes of unpaired surrogates by question marks, as encoders do."""
    return _HALF_EMOJI.sub(lambda found: found[0] if found[1] else b"?", body)


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
