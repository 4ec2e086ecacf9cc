"""The application: routes, and around them what every request passes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import cache, partial

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from setrnn.serve.access_log import Observe
from setrnn.serve.batching import Batcher
from setrnn.serve.hosts import CheckHost
from setrnn.serve.keys import ApiKeys, RequireKey
from setrnn.serve.limits import LimitBodies
from setrnn.serve.metrics import Metrics
from setrnn.serve.openapi import describe
from setrnn.serve.page_files import page_file, page_paths
from setrnn.serve.problems import add_problem_handlers
from setrnn.serve.registry import Registry
from setrnn.serve.routes import POSTS, Service, router
from setrnn.serve.settings import ServeSettings
from setrnn.serve.workers import usual_workers

OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json")  # and the page's files


def make_app(
    registry: Registry,
    settings: ServeSettings | None = None,
    keys: ApiKeys | None = None,
    hosts: Collection[str] | None = None,
) -> FastAPI:
    """Put the application together.

    Args:
        registry: the models; loaded already, or later.
        settings: what bounds requests.
        keys: who may ask; everyone if there are none.
        hosts: names to answer to, beside localhost and addresses; any if None.
    """
    settings = ServeSettings() if settings is None else settings
    metrics = Metrics()
    n_workers = settings.workers or usual_workers(registry.device)
    batchers = {name: _batcher(name, settings, n_workers, metrics) for name in registry.names}

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for batcher in batchers.values():
            await batcher.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.service = Service(registry, settings, metrics, batchers)
    for path, answer in POSTS.items():
        app.add_route(path, answer, ["POST"], include_in_schema=False)
    app.include_router(router)
    page = page_paths()
    for path in page:
        app.add_route(path, page_file, ["GET"], include_in_schema=False)
    add_problem_handlers(app)
    own_paths = {*page, *describe(app, settings, needs_key=False)["paths"], *OPEN_PATHS}
    app.openapi = cache(partial(describe, app, settings, keys is not None))  # type: ignore[method-assign]
    app.add_middleware(LimitBodies, settings=settings)  # the last one added comes first
    if keys is not None:
        app.add_middleware(RequireKey, keys=keys, open_paths={*page, *OPEN_PATHS})
    if hosts is not None:
        app.add_middleware(CheckHost, names=hosts)
    app.add_middleware(HeadAsGet)
    app.add_middleware(Observe, metrics=metrics, paths=own_paths)
    return app


class HeadAsGet:
    """Answer HEAD as GET; the server leaves the body out."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        is_head = scope["type"] == "http" and scope["method"] == "HEAD"
        await self.app({**scope, "method": "GET"} if is_head else scope, receive, send)


def _batcher(name: str, settings: ServeSettings, n_workers: int, metrics: Metrics) -> Batcher:
    batcher = Batcher(
        settings.batch,
        settings.queue,
        settings.batch_ms / 1000,
        n_workers,
        on_batch=partial(metrics.count_batch, name),
    )
    metrics.waiting.labels(name).set_function(lambda: batcher.n_waiting)
    return batcher
