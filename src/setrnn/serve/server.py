"""The service: its application, and its process, which loads, reloads and stops in order."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache, partial
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from setrnn import __version__
from setrnn.errors import SetRNNError
from setrnn.progress import log
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
STOP_SECONDS = 60  # for current requests to finish
GRACE_SECONDS = 0.2  # in which requests that were sent before the stop are still read
KEEP_ALIVE_SECONDS = 75  # more than a proxy keeps idle connections, so that it closes them


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


def serve(
    registry: Registry,
    settings: ServeSettings,
    listener: socket.socket,
    keys: ApiKeys | None,
    hosts: Collection[str] | None,
    greeting: str,
) -> int:
    """Serve until SIGTERM or SIGINT, then finish the current requests.

    The greeting is logged once the models are loaded. SIGHUP loads the models whose folders have
    changed, and the keys. Returns how many requests were left unanswered: 0 unless a second SIGINT
    stops the service at once, or a client does not finish its request.
    """
    app = make_app(registry, settings, keys, hosts, lambda: len(server.server_state.connections))
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=settings.max_connections,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = Server(config, registry, keys, greeting)
    # uvicorn raises the signal that has stopped it again.
    with logging_in_a_thread(), suppress(KeyboardInterrupt):
        server.run([listener])
    if server.failure is not None:
        raise server.failure
    if server.n_unanswered:
        log.info("Stopped; %d requests were refused or left unanswered.", server.n_unanswered)
    else:
        log.info("Stopped; all requests were answered.")
    return server.n_unanswered


class Server(uvicorn.Server):
    """A server that loads its models while it already answers."""

    def __init__(
        self, config: uvicorn.Config, registry: Registry, keys: ApiKeys | None, greeting: str
    ) -> None:
        super().__init__(config)
        self.registry, self.keys, self.greeting = registry, keys, greeting
        self.failure: Exception | None = None
        self.n_unanswered = 0
        self._loader = ThreadPoolExecutor(1, "setrnn-load")  # one after the other

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, and begin to load the models."""
        await super().startup(sockets)
        self._loader.submit(self._load)
        if hasattr(signal, "SIGHUP"):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._loader.submit, self._reload)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Read the requests that were sent before the stop, then finish all current ones."""
        await asyncio.sleep(GRACE_SECONDS)
        await super().shutdown(sockets)
        self.n_unanswered = len(self.server_state.tasks)

    def _load(self) -> None:
        try:
            self.registry.load()
        except Exception as error:  # noqa: BLE001 (the command line reports it in one line)
            self.failure, self.should_exit = error, True
            return
        set_aside_objects()
        log.info(self.greeting)
        models = (f"{each.name} ({each.tagger.method})" for each in self.registry.models.values())
        log.info("Ready: %s.", ", ".join(models))

    def _reload(self) -> None:
        if self.keys is not None:
            try:
                self.keys.load()
                log.info("The API keys are reloaded.")
            except SetRNNError as error:
                log.info("The API keys stay as they were. %s", error)
        self.registry.reload()
        set_aside_objects()


def set_aside_objects() -> None:
    """Let garbage collections skip the libraries and the models.

    They stay, and looking at them again and again takes a third of the time of requests.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def logging_in_a_thread() -> Iterator[None]:
    """Log one line per request to standard error, and nothing from the libraries.

    A thread writes the lines: after a write of its own, each request would wait for a busy worker
    to give up the interpreter again.
    """
    records, lines = SimpleQueue[logging.LogRecord](), logging.StreamHandler()
    lines.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("setrnn.serve")
    logger.handlers, logger.propagate = [QueueHandler(records)], False
    logger.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    listener = QueueListener(records, lines)
    listener.start()
    try:
        yield
    finally:
        listener.stop()
