"""Errors in one form: RFC 9457, application/problem+json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.responses import Response

from setrnn.errors import SetRNNError

MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 20  # that are listed
MAX_SHOWN = 60  # characters of a name that a client sent
RETRY_SECONDS = 2  # after which an answer 503 asks for another attempt

# The status and title of each kind.
KINDS = {
    "bad-json": (400, "The body is not JSON"),
    "bad-request": (400, "The request cannot be read"),
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
_DETAILS = {"extra_forbidden": "Unknown field", "missing": "This field is required"}
_NOT_JSON = "Send the request as JSON in UTF-8."


@dataclass(frozen=True)
class FieldError:
    """What is wrong at one place of a request."""

    pointer: str
    detail: str


@dataclass(frozen=True)
class Problem:
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = None


PROBLEM = TypeAdapter(Problem)


@dataclass
class ProblemError(Exception):
    """A refused request and the reason, which never contains the text that was sent."""

    kind: str
    detail: str
    errors: list[FieldError] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def problem_response(error: ProblemError) -> Response:
    """Return the answer that reports a problem."""
    status, title = KINDS[error.kind]
    detail, headers = error.detail, dict(error.headers)
    if status == 503:
        detail += " Try again after the seconds in the header Retry-After."
        headers["Retry-After"] = str(RETRY_SECONDS)
    problem = Problem(f"urn:setrnn:problem:{error.kind}", title, status, detail, error.errors)
    body = PROBLEM.dump_json(problem, exclude_none=True)
    return Response(body, status, headers, MEDIA_TYPE)


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


async def answer_error(request: Request, error: Exception) -> Response:
    """Report an error of the application in this form."""
    if isinstance(error, RequestValidationError):
        error = invalid_request(error.errors())
    elif isinstance(error, HTTPException):
        error = _of_status(error)
    elif not isinstance(error, ProblemError):
        error = ProblemError("invalid", str(error))
    return problem_response(error)


HANDLERS: dict[int | type[Exception], Any] = dict.fromkeys(
    (ProblemError, RequestValidationError, SetRNNError, HTTPException), answer_error
)


def invalid_request(found: Sequence[Any]) -> ProblemError:
    """Report the errors that pydantic found, and where, without the values."""
    if found[0]["type"] == "json_invalid":
        return ProblemError("bad-json", _NOT_JSON)
    errors = [
        FieldError(_pointer(each["loc"]), _DETAILS.get(each["type"], each["msg"]))
        for each in found[:MAX_ERRORS]
    ]
    more = f" {len(found) - 1} more in 'errors'." if len(found) > 1 else ""
    return ProblemError("invalid", f"{errors[0].pointer}: {errors[0].detail}.{more}", errors)


def _of_status(error: HTTPException) -> ProblemError:
    phrase = HTTPStatus(error.status_code).phrase
    kind, detail = {
        404: ("not-found", "See /openapi.json for all routes."),
        405: ("method-not-allowed", "The header Allow lists the allowed methods."),
    }.get(error.status_code, ("bad-request", f"{phrase}. {_NOT_JSON}"))
    return ProblemError(kind, detail, headers=error.headers or {})


def _pointer(place: Sequence[int | str]) -> str:
    """Return a JSON pointer into the body, or the name of a query parameter."""
    source, *names = place
    shown = [shorten(str(each)) for each in names]
    if source == "body":
        return "#/" + "/".join(each.replace("~", "~0").replace("/", "~1") for each in shown)
    return f"{source} {'/'.join(shown)}"


def shorten(name: str) -> str:
    """Cut a name that a client sent if it is too long to show."""
    return name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}..."
