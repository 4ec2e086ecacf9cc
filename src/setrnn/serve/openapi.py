"""The description of the API: errors in their own form, and the limits as they are set.

What is posted is described here and answered by plain routes: they are the busy ones.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

from setrnn import __version__
from setrnn.serve import schemas as models
from setrnn.serve.problems import KINDS, MEDIA_TYPE
from setrnn.serve.settings import ServeSettings

_REFERENCE = "#/components/schemas/{model}"
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}}
_RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_VERSION = {
    "X-Model-Version": {"description": "The model's version.", "schema": {"type": "string"}}
}
_KEY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


_posts = APIRouter()


@_posts.post("/v1/tag", name="tag")
def _tag(wanted: models.TagRequest) -> models.TagAnswer:  # type: ignore[empty-body]
    """Predict a label set for each text."""


@_posts.post("/v1/complete", name="complete")
def _complete(wanted: models.CompleteRequest) -> models.CompleteAnswer:  # type: ignore[empty-body]
    """Find the rest of a text's labels, when some are known to be right or wrong."""


@_posts.post("/v1/explain", name="explain")
def _explain(wanted: models.ExplainRequest) -> models.ExplainAnswer:  # type: ignore[empty-body]
    """Show why a text is tagged as it is: sequences, sets, and the words attended to."""


def describe(app: FastAPI, settings: ServeSettings, needs_key: bool) -> dict[str, Any]:
    """Return the OpenAPI description."""
    description = get_openapi(
        title="setrnn",
        version=__version__,
        summary="Tag documents with sets of labels, and know the probability of each set.",
        routes=[*_posts.routes, *app.routes],
    )
    schemas = description["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = models.Problem.model_json_schema(ref_template=_REFERENCE)
    schemas.update(schemas["Problem"].pop("$defs"))
    for name, schema in schemas.items():
        extra = getattr(models, name).model_config.get("json_schema_extra", {})
        schema.update(extra)  # anew, as FastAPI leaves out what is null
    schemas["TagRequest"]["properties"]["texts"]["maxItems"] = settings.max_texts
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            operation["operationId"] = operation["summary"].lower()
            operation["responses"].update(_problems(path, method, needs_key))
            if method == "post" or path == "/v1/labels":
                operation["responses"]["200"]["headers"] = _VERSION
            if needs_key and _is_closed(path):
                operation["security"] = [{name: []} for name in _KEY_SCHEMES]
    if needs_key:
        description["components"]["securitySchemes"] = _KEY_SCHEMES
    return description


def _is_closed(path: str) -> bool:
    return path.startswith("/v1/") or path == "/metrics"


def _problems(path: str, method: str, needs_key: bool) -> dict[str, Any]:
    """Return the errors an operation can answer."""
    kinds = []
    if needs_key and _is_closed(path):
        kinds.append("unauthorized")
    if method == "post":
        kinds += ["bad-json", "too-slow", "body-too-large", "not-json-type", "queue-full"]
    if path.startswith("/v1/"):
        kinds.append("not-ready")
    if path.startswith("/v1/") and path != "/v1/models":
        kinds.append("invalid")
    if path == "/readyz":
        kinds.append("not-ready")
    found: dict[str, Any] = {}
    for kind in kinds:
        status, title = KINDS[kind]
        found[str(status)] = {"description": title, "content": _PROBLEM}
        if status == 503:
            found[str(status)]["headers"] = _RETRY
    return found
