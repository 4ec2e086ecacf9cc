"""What a client sent, checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from setrnn.serve.problems import ProblemError, wrong_fields

MOST_FIELDS = 100  # of a request: naming more that are wrong would take long

Wanted = TypeVar("Wanted", bound=BaseModel)


async def sent(
    request: Request, kind: type[Wanted], max_items: Mapping[str, int] | None = None
) -> Wanted:
    """Read the body of a request, or say what is wrong with it.

    Lists of more than `max_items`, and more fields than any request has, are refused before they
    are looked at: the event loop does that, and serves nobody meanwhile.
    """
    media_type = request.headers.get("Content-Type", "").split(";")[0].strip().lower()
    if media_type != "application/json" or "Content-Encoding" in request.headers:
        raise ProblemError(
            "not-json-type", "Send plain JSON with the header Content-Type: application/json."
        )
    try:
        values = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ProblemError("bad-json", "Send the request as JSON, in UTF-8.") from None
    if not isinstance(values, dict):
        raise ProblemError("invalid", "Send a JSON object.")
    _check_sizes(values, max_items or {})
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise wrong_fields([(("body", *each["loc"]), each) for each in found]) from None


def _check_sizes(values: Mapping[str, Any], max_items: Mapping[str, int]) -> None:
    if len(values) > MOST_FIELDS:
        raise ProblemError(
            "invalid", f"A request may have {MOST_FIELDS} fields, got {len(values):,}."
        )
    for name, most in max_items.items():
        value = values.get(name)
        if isinstance(value, list) and len(value) > most:
            raise ProblemError("invalid", f"#/{name}: At most {most:,} items, got {len(value):,}.")
