"""What a client sent, checked."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from setrnn.serve.problems import ProblemError, wrong_fields

Wanted = TypeVar("Wanted", bound=BaseModel)


async def sent(request: Request, kind: type[Wanted]) -> Wanted:
    """Read the body of a request, or say what is wrong with it."""
    media_type = request.headers.get("Content-Type", "").split(";")[0].strip().lower()
    if media_type != "application/json":
        raise ProblemError("invalid", "Send JSON with the header Content-Type: application/json.")
    try:
        values = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ProblemError("bad-json", "Send the request as JSON, in UTF-8.") from None
    if not isinstance(values, dict):
        raise ProblemError("invalid", "Send a JSON object.")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise wrong_fields([(("body", *each["loc"]), each) for each in found]) from None
