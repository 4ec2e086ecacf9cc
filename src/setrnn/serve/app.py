"""The application: the routes, the page, and what every request passes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from setrnn import __version__
from setrnn.serve import label_studio
from setrnn.serve.batching import Batcher, default_workers
from setrnn.serve.guard import OPEN_PATHS, PAGE_FILES, Guard, Metrics
from setrnn.serve.problems import HANDLERS, PROBLEM
from setrnn.serve.registry import Registry
from setrnn.serve.routes import Service, router
from setrnn.serve.settings import ApiKeys, ServeSettings

PAGE = Path(__file__).parent / "page"
# FastAPI can export requests to OpenTelemetry, as the environment says: texts must not leave.
NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
KEY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


def make_app(
    registry: Registry,
    settings: ServeSettings = ServeSettings(),  # noqa: B008 (it cannot be changed)
    keys: ApiKeys | None = None,
    hosts: Collection[str] | None = None,
    n_open: Callable[[], int] | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        registry: the models; they may be loaded later.
        settings: the limits of requests.
        keys: the valid API keys; None: no key is required.
        hosts: the allowed host names besides localhost and addresses; None: all.
        n_open: returns the number of open connections, if that is known.
    """
    metrics = Metrics()
    batchers = _make_batchers(registry, settings, metrics, n_open)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for batcher in batchers.values():
            await batcher.close()

    async def index(request: Request) -> Response:
        return await page.get_response("index.html", request.scope)

    routes, open_paths = [*router.routes], [*OPEN_PATHS]
    if settings.label_studio:
        routes += label_studio.router.routes
        open_paths.append(label_studio.HEALTH)
    app = FastAPI(
        routes=routes,  # included, each request would be matched twice
        lifespan=lifespan,
        exception_handlers=HANDLERS,
        telemetry=NO_TELEMETRY,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = Service(registry, settings, metrics, batchers)
    page = StaticFiles(directory=PAGE)
    app.mount(PAGE_FILES, page)
    app.add_route("/", index, ["GET"])
    app.openapi = cache(partial(_describe, app, keys is not None))  # type: ignore[method-assign]
    paths = {each.path for each in app.routes if isinstance(each, Route)}
    app.add_middleware(
        Guard, metrics=metrics, routes=paths, hosts=hosts, keys=keys, open_paths=open_paths
    )
    return app


def _make_batchers(
    registry: Registry,
    settings: ServeSettings,
    metrics: Metrics,
    n_open: Callable[[], int] | None,
) -> dict[str, Batcher]:
    """Return the queue of each model, by its name."""
    n_workers = settings.workers or default_workers(registry.device)

    def may_come() -> bool:
        """Return whether there is a client that does not wait for an answer."""
        return n_open is None or n_open() > sum(each.n_pending for each in batchers.values())

    def make_batcher(name: str) -> Batcher:
        batcher = Batcher(
            settings.batch,
            settings.queue,
            settings.batch_ms / 1000,
            n_workers,
            on_batch=metrics.batches.labels(name).observe,
            may_come=may_come,
        )
        metrics.waiting.labels(name).set_function(lambda: batcher.n_waiting)
        return batcher

    batchers = {name: make_batcher(name) for name in registry.folders}
    return batchers


def _describe(app: FastAPI, needs_key: bool) -> dict[str, Any]:
    """Return FastAPI's OpenAPI description, with the form of errors and the keys."""
    description = get_openapi(
        title="setrnn",
        version=__version__,
        summary="Tag documents with sets of labels, with the probability of each set.",
        routes=app.routes,
    )
    components = description["components"]
    components["schemas"]["Problem"] = PROBLEM.json_schema()
    if needs_key:
        components["securitySchemes"] = KEY_SCHEMES
        for path, operations in description["paths"].items():
            for operation in operations.values() if path not in OPEN_PATHS else ():
                operation["security"] = [{name: []} for name in KEY_SCHEMES]
    return description
