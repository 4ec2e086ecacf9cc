"""Routes that read one JSON object and answer with another, without more work than that takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

VERSION_HEADER = "X-Model-Version"


class JsonRoute(APIRoute):
    """A route of a function `(wanted, request)` whose answer names the model.

    FastAPI describes the route by the types of the function. A request is read, and its answer
    written, by these types too; what FastAPI does besides, for routes of other kinds, takes as long
    as all the rest of a small request.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        types, answer = get_type_hints(self.endpoint), self.endpoint
        to_read, to_write = TypeAdapter[Any](types["wanted"]), TypeAdapter[Any](types["return"])

        async def handle(request: Request) -> Response:
            wanted = _validate(to_read, _parse(await request.body()))
            found = await answer(wanted, request)
            headers = {VERSION_HEADER: found.model.version}
            return Response(to_write.dump_json(found), 200, headers, "application/json")

        return handle


def _parse(body: bytes) -> Any:  # noqa: ANN401 (whatever was sent)
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        found = {"type": "json_invalid", "loc": ("body", error.pos), "msg": error.msg}
        raise RequestValidationError([found]) from None
    except (ValueError, RecursionError):  # not text, or nested too deeply
        raise HTTPException(400) from None


def _validate(kind: TypeAdapter[Any], values: Any) -> Any:  # noqa: ANN401 (whatever was sent)
    try:
        return kind.validate_python(values, from_attributes=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        errors = [{**each, "loc": ("body", *each["loc"])} for each in found]
    raise RequestValidationError(errors)
