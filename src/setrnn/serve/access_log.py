"""One line a request, and what is said of failures: never the text, nor the query."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Collection
from pathlib import Path
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setrnn.serve.metrics import Metrics
from setrnn.serve.problems import ProblemError, problem_response

logger = logging.getLogger("setrnn.serve")

OTHER = "other"  # any path that is none of ours: it may say anything
CLIENT_GONE = 499  # in log and metrics; nobody gets it


class Observe:
    """Count and log each request, and answer 500 where something fails."""

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: Collection[str]) -> None:
        self.app, self.metrics, self.paths = app, metrics, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and look at what becomes of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, start = CLIENT_GONE, perf_counter()

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-content-type-options", b"nosniff"))
            await send(message)

        failure: Exception | None = None
        try:
            try:
                await self.app(scope, receive, observed)
            except Exception as error:  # noqa: BLE001 (the last line of defence: no tracebacks)
                failure = error
            # Only now: where logging itself fails, it prints the error that is being handled.
            if failure is not None:
                log_failure(failure)
            if failure is not None and status == CLIENT_GONE:
                problem = ProblemError("internal", "The request was fine. The log says where.")
                await problem_response(problem)(scope, receive, observed)
        finally:
            route = scope["path"] if scope["path"] in self.paths else OTHER
            seconds = perf_counter() - start
            self.metrics.count_request(route, status, seconds)
            method = scope["method"] if scope["method"] in _METHODS else OTHER
            logger.info("%s %s %d %.1f ms", method, route, status, 1000 * seconds)


_METHODS = frozenset(("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"))


def log_failure(error: BaseException) -> None:
    """Name an error and its place; its message could hold what was sent."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    logger.error("failed: %s%s", type(error).__name__, place)
