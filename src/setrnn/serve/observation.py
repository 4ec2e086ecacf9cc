"""One log line and one metric per request; neither holds a text, a query or a key."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Collection
from functools import partial
from pathlib import Path
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setrnn.serve.problems import ProblemError, problem_response

logger = logging.getLogger("setrnn.serve")

OTHER = "other"  # any unknown path or method: it may contain anything
CLIENT_GONE = 499  # in the log and the metrics; no client receives it
METHODS = frozenset(("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"))
# For all answers: a page may load its own files only, and be embedded nowhere.
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        b"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)


class Metrics:
    """The Prometheus metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.requests = counter("setrnn_requests", "Requests answered.", ("route", "status"))
        self.seconds = histogram(
            "setrnn_request_seconds",
            "Seconds from the head of a request to the end of its answer.",
            ("route",),
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        )
        self.documents = counter("setrnn_documents", "Documents processed.", ("model",))
        self.batches = histogram(
            "setrnn_batch_documents",
            "Documents per batch.",
            ("model",),
            buckets=[2**n for n in range(9)],
        )
        self.waiting = Gauge(
            "setrnn_queue_documents", "Documents waiting.", ("model",), registry=self.registry
        )
        self.refused = counter(
            "setrnn_queue_refused", "Requests refused because the queue was full.", ("model",)
        )

    def count_batch(self, model: str, n_documents: int) -> None:
        """Count a finished batch."""
        self.documents.labels(model).inc(n_documents)
        self.batches.labels(model).observe(n_documents)


class Observe:
    """Log and count each request, add the headers of all answers, and answer failures with 500.

    HEAD is answered like GET; the server omits the body.

    Args:
        app: the application.
        metrics: where requests are counted.
        routes: the paths that are logged and counted by name.
        folder: the same for all paths below this one.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, routes: Collection[str], folder: str
    ) -> None:
        self.app, self.metrics = app, metrics
        self.routes, self.folder = frozenset(routes), folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and record its outcome."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, start = CLIENT_GONE, perf_counter()

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].extend(HEADERS)
            await send(message)

        failure: Exception | None = None
        method, path = scope["method"], scope["path"]
        try:
            try:
                asked = {**scope, "method": "GET"} if method == "HEAD" else scope
                await self.app(asked, receive, send_observed)
            except Exception as error:  # noqa: BLE001 (the last line of defence: no tracebacks)
                failure = error
            # Outside the except block: if logging itself fails, it prints the error being handled.
            if failure is not None:
                log_failure(failure)
                if status == CLIENT_GONE:
                    said = ProblemError("internal", "The request was valid. See the server's log.")
                    await problem_response(said)(scope, receive, send_observed)
        finally:
            seconds = perf_counter() - start
            below = self.folder if path.startswith(self.folder) else OTHER
            route = path if path in self.routes else below
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            shown = method if method in METHODS else OTHER
            logger.info("%s %s %d %.1f ms", shown, route, status, 1000 * seconds)


def log_failure(error: BaseException) -> None:
    """Log the class and place of an error's first cause; a message could contain a text."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    logger.error("failed: %s%s", type(error).__name__, place)
