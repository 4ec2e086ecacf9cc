"""What every request passes: the checks of its host name and key, the log and the metrics.

Neither the log nor the metrics hold a text, a query or a key.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import logging
import traceback
from collections.abc import Collection
from functools import partial
from pathlib import Path
from time import perf_counter
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setrnn.serve.problems import ProblemError, problem_response
from setrnn.serve.settings import ApiKeys

logger = logging.getLogger("setrnn.serve")

PAGE_FILES = "/page/"
OPEN_PATHS = ("/", "/healthz", "/readyz", "/openapi.json")  # they need no key
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
        histogram = partial(Histogram, registry=self.registry)
        self.requests = Counter(
            "setrnn_requests", "Requests answered.", ("route", "status"), registry=self.registry
        )
        self.seconds = histogram(
            "setrnn_request_seconds",
            "Seconds from the head of a request to the end of its answer.",
            ("route",),
        )
        self.batches = histogram(
            "setrnn_batch_documents",
            "Documents per batch.",
            ("model",),
            buckets=[2**n for n in range(9)],
        )
        self.waiting = Gauge(
            "setrnn_queue_documents", "Documents waiting.", ("model",), registry=self.registry
        )


class Guard:
    """Check, log and count each request, add the headers of all answers, and answer failures 500.

    HEAD is answered like GET; the server omits the body.

    Another site can make its own name resolve to this machine (DNS rebinding), so that its page
    asks this service from a reader's browser. It cannot do that with localhost or an address, which
    are always allowed.

    Args:
        app: the application.
        metrics: where requests are counted.
        routes: the paths that are logged and counted by name.
        hosts: the allowed host names; None: all.
        keys: the valid keys; None: no key is required.
        open_paths: the paths that need no key, besides the files of the page.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        routes: Collection[str],
        hosts: Collection[str] | None,
        keys: ApiKeys | None,
        open_paths: Collection[str],
    ) -> None:
        self.app, self.metrics, self.keys = app, metrics, keys
        self.routes, self.open_paths = frozenset(routes), frozenset(open_paths)
        # Browsers always send a host name; health checks may not.
        self.hosts = None if hosts is None else {"", "localhost", *map(str.lower, hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on, and record its outcome."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, start = CLIENT_GONE, perf_counter()
        method, path = scope["method"], scope["path"]

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].extend(HEADERS)
            await send(message)

        try:
            self._check(path, dict(scope["headers"]))
            asked = {**scope, "method": "GET"} if method == "HEAD" else scope
            await self.app(asked, receive, send_observed)
        except ProblemError as error:
            await problem_response(error)(scope, receive, send_observed)
        except Exception as error:  # noqa: BLE001 (the last line of defence: no tracebacks)
            log_failure(error)
            if status == CLIENT_GONE:
                said = ProblemError("internal", "The request was valid. See the server's log.")
                await problem_response(said)(scope, receive, send_observed)
        finally:
            seconds = perf_counter() - start
            below = PAGE_FILES if path.startswith(PAGE_FILES) else OTHER
            route = path if path in self.routes else below
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            shown = method if method in METHODS else OTHER
            logger.info("%s %s %d %.1f ms", shown, route, status, 1000 * seconds)

    def _check(self, path: str, headers: dict[bytes, bytes]) -> None:
        """Refuse requests for other host names, and requests without a key."""
        if self.hosts is not None and not self._is_own(headers.get(b"host", b"")):
            raise ProblemError(
                "other-host",
                "Use localhost or an address, or start the service with --allow-host NAME for "
                "this name.",
            )
        if self.keys is None or path in self.open_paths or path.startswith(PAGE_FILES):
            return
        if not self.keys.hold(find_key(headers)):
            raise ProblemError(
                "unauthorized",
                "Send the key in the header 'Authorization: Bearer KEY' or 'X-API-Key: KEY'.",
                headers={"WWW-Authenticate": "Bearer"},
            )

    def _is_own(self, asked: bytes) -> bool:
        """Return whether a host is an address or one of the allowed names."""
        assert self.hosts is not None
        try:
            host = (urlsplit(f"//{asked.decode('latin-1')}").hostname or "").rstrip(".")
            return host in self.hosts or bool(ipaddress.ip_address(host))
        except ValueError:
            return False


def find_key(headers: dict[bytes, bytes]) -> bytes:
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


def log_failure(error: BaseException) -> None:
    """Log the class and place of an error's first cause; a message could contain a text."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    logger.error("failed: %s%s", type(error).__name__, place)
