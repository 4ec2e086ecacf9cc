"""Errors in one form: RFC 9457, application/problem+json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from setrnn.errors import SetRNNError

MEDIA_TYPE = "application/problem+json"
MOST_ERRORS = 20  # that are listed
NAME_SHOWN = 60  # characters of a name that came from outside

Place = Sequence[int | str]  # "body" or "query", then names and numbers

# What each kind is called, and its status.
KINDS = {
    "bad-json": (400, "The body is not JSON"),
    "bad-request": (400, "The request cannot be read"),
    "unauthorized": (401, "An API key is needed"),
    "not-found": (404, "There is nothing here"),
    "method-not-allowed": (405, "This method is not allowed here"),
    "too-slow": (408, "The body came too slowly"),
    "body-too-large": (413, "The body is too large"),
    "not-json-type": (415, "The body is of another type"),
    "other-host": (421, "This host is not served here"),
    "invalid": (422, "The request is not valid"),
    "head-too-large": (431, "The head of the request is too large"),
    "internal": (500, "Something went wrong here"),
    "queue-full": (503, "Too much is waiting"),
    "stopping": (503, "The service is ending"),
    "not-ready": (503, "Not ready yet"),
}
_SAID = {"extra_forbidden": "There is no such field", "missing": "This field is needed"}
_KIND_OF_STATUS = {404: "not-found", 405: "method-not-allowed", 400: "bad-request"}


@dataclass
class ProblemError(Exception):
    """A request that is refused, and why: never with the text that was sent."""

    kind: str
    detail: str
    errors: Sequence[Mapping[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def problem_response(problem: ProblemError) -> Response:
    """Write a problem as an answer."""
    status, title = KINDS[problem.kind]
    content: dict[str, Any] = {
        "type": f"urn:setrnn:problem:{problem.kind}",
        "title": title,
        "status": status,
        "detail": problem.detail,
    }
    if problem.errors:
        content["errors"] = list(problem.errors)
    body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, dict(problem.headers), MEDIA_TYPE)


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every error of the application in this form."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, ProblemError)
        return problem_response(error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem_response(wrong_fields([(each["loc"], each) for each in error.errors()]))

    async def by_library(request: Request, error: Exception) -> Response:
        return problem_response(ProblemError("invalid", str(error)))

    async def by_status(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return problem_response(_of_status(error))

    app.add_exception_handler(ProblemError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(SetRNNError, by_library)
    app.add_exception_handler(HTTPException, by_status)


def wrong_fields(found: Sequence[tuple[Place, Mapping[str, Any]]]) -> ProblemError:
    """Say what is wrong where, without the values: of each place, what pydantic says."""
    errors = [
        {"pointer": _pointer(place), "detail": _SAID.get(each["type"], each["msg"])}
        for place, each in found
    ]
    first = errors[0]
    more = f" And {len(errors) - 1} more, see 'errors'." if len(errors) > 1 else ""
    detail = f"{first['pointer']}: {first['detail']}.{more}"
    return ProblemError("invalid", detail, errors[:MOST_ERRORS])


def _of_status(error: HTTPException) -> ProblemError:
    kind = _KIND_OF_STATUS.get(error.status_code, "bad-request")
    details = {
        "not-found": "See /openapi.json for what there is.",
        "method-not-allowed": "See the header Allow for the methods there are.",
        "bad-request": f"{HTTPStatus(error.status_code).phrase}.",
    }
    return ProblemError(kind, details[kind], headers=error.headers or {})


def _pointer(place: Place) -> str:
    """Name a place: a JSON pointer into the body, or a parameter of the query."""
    source, *names = place
    shown = [shortened(str(each)) for each in names]
    if source == "body":
        return "#/" + "/".join(each.replace("~", "~0").replace("/", "~1") for each in shown)
    return f"{source} {'/'.join(shown)}"


def shortened(name: str) -> str:
    """Cut a name from outside that is too long to be one."""
    return name if len(name) <= NAME_SHOWN else f"{name[:NAME_SHOWN]}..."
