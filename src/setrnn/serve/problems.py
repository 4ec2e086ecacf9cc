"""Errors in one form: RFC 9457, application/problem+json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.responses import Response

from setrnn.errors import SetRNNError, count_of

MEDIA_TYPE = "application/problem+json"
MAX_SHOWN = 60  # characters of a name that a client sent
RETRY_SECONDS = 2  # after which an answer 503 asks for another attempt

# The status and title of each kind.
KINDS = {
    "bad-json": (400, "The body is not JSON"),
    "unauthorized": (401, "An API key is required"),
    "not-found": (404, "Not found"),
    "method-not-allowed": (405, "Method not allowed"),
    "body-too-large": (413, "The body is too large"),
    "not-json-type": (415, "The content type is not JSON"),
    "other-host": (421, "This host name is not served here"),
    "invalid": (422, "The request is not valid"),
    "internal": (500, "Internal error"),
    "queue-full": (503, "The queue is full"),
    "stopping": (503, "The service is stopping"),
    "not-ready": (503, "The service is not ready"),
}
# Of the router, by the status of its HTTPException.
_ROUTING = {
    404: ("not-found", "See /openapi.json for all routes."),
    405: ("method-not-allowed", "The header Allow lists the allowed methods."),
}
_DETAILS = {"extra_forbidden": "Unknown field", "missing": "This field is required"}


@dataclass(frozen=True)
class Problem:
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


PROBLEM = TypeAdapter(Problem)
# Describes the errors of a route in OpenAPI.
ERRORS: dict[int | str, Any] = {
    "default": {
        "description": "The request is refused or has failed.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}


@dataclass
class ProblemError(Exception):
    """A refused request and the reason, which never contains the text that was sent."""

    kind: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)


def problem_response(error: ProblemError) -> Response:
    """Return the answer that reports a problem."""
    status, title = KINDS[error.kind]
    detail, headers = error.detail, dict(error.headers)
    if status == 503:
        detail += " Try again after the seconds in the header Retry-After."
        headers["Retry-After"] = str(RETRY_SECONDS)
    problem = Problem(f"urn:setrnn:problem:{error.kind}", title, status, detail)
    return Response(PROBLEM.dump_json(problem), status, headers, MEDIA_TYPE)


async def answer_error(request: Request, error: Exception) -> Response:
    """Report an error of the application in this form."""
    if isinstance(error, RequestValidationError):
        error = invalid_request(error.errors())
    elif isinstance(error, HTTPException):
        error = ProblemError(*_ROUTING[error.status_code], headers=error.headers or {})
    elif not isinstance(error, ProblemError):
        error = ProblemError("invalid", str(error))
    return problem_response(error)


HANDLERS: dict[int | type[Exception], Any] = dict.fromkeys(
    (ProblemError, RequestValidationError, SetRNNError, HTTPException), answer_error
)


def invalid_request(errors: Sequence[Any], root: str = "") -> ProblemError:
    """Report the first error that pydantic found below a root, and where, without the value."""
    first, *others = errors
    if first["type"] == "json_invalid":
        return ProblemError("bad-json", "Send the request as JSON in UTF-8.")
    place = "/".join(shorten(str(each)) for each in first["loc"])
    said = _DETAILS.get(first["type"], first["msg"])
    more = f" {count_of(len(others), 'more error')}." if others else ""
    return ProblemError("invalid", f"{root}{place}: {said}.{more}")


def shorten(name: str) -> str:
    """Cut a name that a client sent if it is too long to show."""
    return name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}..."
