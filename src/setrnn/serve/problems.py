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
MAX_ERRORS = 20  # that are listed
MAX_SHOWN = 60  # characters of a name that a client sent

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


@dataclass
class ProblemError(Exception):
    """A refused request and the reason, which never contains the text that was sent."""

    kind: str
    detail: str
    errors: Sequence[Mapping[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def problem_response(problem: ProblemError) -> Response:
    """Return the answer that reports a problem."""
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
    """Report every error of the application in this form."""

    def handle(kind: type[Exception], convert: Any) -> None:  # noqa: ANN401 (error -> problem)
        async def answer(request: Request, error: Exception) -> Response:
            return problem_response(convert(error))

        app.add_exception_handler(kind, answer)

    handle(ProblemError, lambda error: error)
    handle(RequestValidationError, _of_validation)
    handle(SetRNNError, lambda error: ProblemError("invalid", str(error)))
    handle(HTTPException, _of_status)


def _of_validation(error: RequestValidationError) -> ProblemError:
    """Report what pydantic found, and where, without the values."""
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        return ProblemError("bad-json", _NOT_JSON)
    errors = [
        {"pointer": _pointer(each["loc"]), "detail": _DETAILS.get(each["type"], each["msg"])}
        for each in found
    ]
    more = f" {len(errors) - 1} more in 'errors'." if len(errors) > 1 else ""
    detail = f"{errors[0]['pointer']}: {errors[0]['detail']}.{more}"
    return ProblemError("invalid", detail, errors[:MAX_ERRORS])


def _of_status(error: HTTPException) -> ProblemError:
    headers = error.headers or {}
    if error.status_code == 404:
        return ProblemError("not-found", "See /openapi.json for all routes.", headers=headers)
    if error.status_code == 405:
        detail = "The header Allow lists the allowed methods."
        return ProblemError("method-not-allowed", detail, headers=headers)
    phrase = HTTPStatus(error.status_code).phrase
    return ProblemError("bad-request", f"{phrase}. {_NOT_JSON}", headers=headers)


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
