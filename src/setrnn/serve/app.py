"""The application: the routes, the page, and the layers that every request passes."""

from __future__ import annotations

import base64
import binascii
import ipaddress
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
from starlette.types import ASGIApp, Receive, Scope, Send

from setrnn import __version__
from setrnn.serve import label_studio
from setrnn.serve.batching import Batcher, default_workers
from setrnn.serve.observation import Metrics, Observe
from setrnn.serve.problems import (
    HANDLERS,
    PROBLEM,
    ProblemError,
    describe_problems,
    problem_response,
)
from setrnn.serve.registry import Registry
from setrnn.serve.routes import Service, posts, router
from setrnn.serve.settings import ApiKeys, ServeSettings

PAGE = Path(__file__).parent / "page"
PAGE_FILES = "/page/"
OPEN_PATHS = ("/", "/healthz", "/readyz", "/openapi.json")  # they need no key
# FastAPI can export requests to OpenTelemetry, as the environment says: texts must not leave.
NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
KEY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_OTHER_HOST = ProblemError(
    "other-host",
    "Use localhost or an address, or start the service with --allow-host NAME for this name.",
)
_KEY_REQUIRED = ProblemError(
    "unauthorized",
    "Send the key in the header 'Authorization: Bearer KEY' or 'X-API-Key: KEY'.",
    headers={"WWW-Authenticate": "Bearer"},
)


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

    routes, open_paths = [*posts.routes, *router.routes], [*OPEN_PATHS]
    if settings.label_studio:
        routes += [*label_studio.posts.routes, *label_studio.router.routes]
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
    app.openapi = cache(partial(_describe, app, settings, keys is not None))  # type: ignore[method-assign]
    paths = {each.path for each in app.routes if isinstance(each, Route)}
    app.add_middleware(  # requests pass the last one added first
        Guard, hosts=hosts, keys=keys, open_paths=open_paths
    )
    app.add_middleware(Observe, metrics=metrics, routes=paths, folder=PAGE_FILES)
    return app


def _make_batchers(
    registry: Registry,
    settings: ServeSettings,
    metrics: Metrics,
    n_open: Callable[[], int] | None,
) -> dict[str, Batcher]:
    """Return the queue of each model, by its name."""
    n_workers = settings.workers or default_workers(registry.device)
    batchers: dict[str, Batcher] = {}

    def may_come() -> bool:
        """Return whether there is a client that does not wait for an answer."""
        return n_open is None or n_open() > sum(each.n_pending for each in batchers.values())

    for name in registry.names:
        batchers[name] = Batcher(
            settings.batch,
            settings.queue,
            settings.batch_ms / 1000,
            n_workers,
            on_batch=partial(metrics.count_batch, name),
            on_waiting=metrics.waiting.labels(name).set,
            may_come=may_come,
        )
    return batchers


def _describe(app: FastAPI, settings: ServeSettings, needs_key: bool) -> dict[str, Any]:
    """Return FastAPI's OpenAPI description with what depends on the options of the service."""
    description = get_openapi(
        title="setrnn",
        version=__version__,
        summary="Tag documents with sets of labels, with the probability of each set.",
        routes=app.routes,
    )
    components = description["components"]
    problem = PROBLEM.json_schema(ref_template="#/components/schemas/{model}")
    components["schemas"].update(problem.pop("$defs"), Problem=problem)
    texts = components["schemas"]["TagRequest"]["properties"]["texts"]
    texts["maxItems"] = settings.max_texts
    if needs_key:
        components["securitySchemes"] = KEY_SCHEMES
        for path, operations in description["paths"].items():
            for operation in operations.values() if path not in OPEN_PATHS else ():
                operation["security"] = [{name: []} for name in KEY_SCHEMES]
                unauthorized = describe_problems("unauthorized").items()
                operation["responses"].update({str(key): value for key, value in unauthorized})
    return description


class Guard:
    """Refuse requests for other host names, and requests without a key.

    Another site can make its own name resolve to this machine (DNS rebinding), so that its page
    asks this service from a reader's browser. It cannot do that with localhost or an address, which
    are always allowed.

    Args:
        app: the application.
        hosts: the allowed host names; None: all.
        keys: the valid keys; None: no key is required.
        open_paths: the paths that need no key, besides the files of the page.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str] | None,
        keys: ApiKeys | None,
        open_paths: Collection[str],
    ) -> None:
        self.app, self.keys = app, keys
        # Browsers always send a host name; health checks may not.
        self.hosts = None if hosts is None else {"", "localhost", *map(str.lower, hosts)}
        self.open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 to a request for another host, 401 to one without a key."""
        answer: ASGIApp = self.app
        if scope["type"] == "http":
            path, headers = scope["path"], dict(scope["headers"])
            if not self._is_own_host(headers.get(b"host", b"").decode("latin-1").lower()):
                answer = problem_response(_OTHER_HOST)
            elif (
                self.keys is not None
                and path not in self.open_paths
                and not path.startswith(PAGE_FILES)
                and not self.keys.hold(self._find_key(headers))
            ):
                answer = problem_response(_KEY_REQUIRED)
        await answer(scope, receive, send)

    def _is_own_host(self, asked: str) -> bool:
        if self.hosts is None:
            return True
        name, _, port = asked.rpartition(":")
        host = (name if name and port.isdigit() else asked).rstrip(".")
        if host in self.hosts:
            return True
        try:
            ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True

    def _find_key(self, headers: dict[bytes, bytes]) -> bytes:
        """Return the key of a request; empty if it has none.

        Label Studio can send it only as the password of basic authentication.
        """
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"basic":
            try:
                return base64.b64decode(key.strip(), validate=True).partition(b":")[2]
            except binascii.Error:
                return b""
        return key.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
