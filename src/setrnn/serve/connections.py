"""Limits on connections: their number, slow and large heads, unread answers, unread bodies.

uvicorn has no options for these. `LimitedConnection` stands between asyncio and the server's own
protocol and passes every event on; it uses asyncio's protocol interface only. `Connections`, around
the ASGI application, tells it when a request starts, how much of its body was read, and when it is
answered.

A connection that is closed while its client still sends is reset, and the client may lose the
answer. After an early answer, what the client sends is therefore read and discarded for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setrnn.serve.problems import ProblemError, problem_response

logger = logging.getLogger("setrnn.serve")

MAX_HEAD_BYTES = 64 << 10
# Received but not read by the application: what asyncio and uvicorn buffer, with a wide margin.
MAX_UNREAD_BYTES = 1 << 20
FRAME_BYTES = 8  # around each byte of a body that is sent in chunks of one byte
MAX_DISCARDED_BYTES = 64 << 20  # of a body after an early answer
MAX_REFUSED = 32  # refused connections that are kept until their clients have read the answer
LOG_SECONDS = 10.0  # between two log lines on refused and closed connections

_HEAD_TOO_LARGE = ProblemError(
    "head-too-large",
    f"The head of a request may have {MAX_HEAD_BYTES:,} bytes.",
    headers={"Connection": "close"},
)
_TOO_MANY = ProblemError(
    "too-many-connections",
    "Too many connections are open. Try again after the seconds in the header Retry-After.",
    headers={"Retry-After": "1", "Connection": "close"},
)

Client = tuple[str, int]


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections there may be, and how long each may wait.

    Args:
        n_open: connections at once; more are refused.
        head_seconds: for the complete head of the next request.
        read_seconds: for the client to read what was sent.
        linger_seconds: for the client to stop sending after an early answer.
    """

    n_open: int = 1_000
    head_seconds: float = 10.0
    read_seconds: float = 30.0
    linger_seconds: float = 5.0


class Connections:
    """The open connections by client address, and their current requests."""

    def __init__(
        self,
        app: ASGIApp,
        limits: ConnectionLimits | None = None,
        opened: dict[Client, LimitedConnection] | None = None,
    ) -> None:
        self.app = app
        self.limits = ConnectionLimits() if limits is None else limits
        self.n_requests = 0
        self.n_refused = 0  # connections that are refused and not closed yet
        self.open: dict[Client, LimitedConnection] = {} if opened is None else opened
        self._closed: Counter[str] = Counter()  # reasons since the last log line
        self._log_timer: asyncio.TimerHandle | None = None

    def limit(self, inner: Callable[..., asyncio.Protocol]) -> Callable[..., asyncio.Protocol]:
        """Put limits around the protocol that a server makes per connection."""

        def make(**options: Any) -> LimitedConnection:  # noqa: ANN401 (the server's own)
            return LimitedConnection(inner(**options), self)

        return make

    def count_closed(self, reason: str) -> None:
        """Count a connection that was refused or closed early; log the counts now and then."""
        self._closed[reason] += 1
        if self._log_timer is None:
            self._log_closed()

    def _log_closed(self) -> None:
        self._log_timer = None
        if self._closed:
            reasons = ", ".join(f"{n} {reason}" for reason, n in self._closed.items())
            logger.warning("connections: %s; %d open", reasons, len(self.open))
            self._closed.clear()
            loop = asyncio.get_running_loop()
            self._log_timer = loop.call_later(LOG_SECONDS, self._log_closed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and keep its connection informed."""
        client = scope.get("client")
        connection = None if client is None else self.open.get(tuple(client))
        if scope["type"] != "http" or connection is None:
            await self.app(scope, receive, send)
            return
        is_read = not _has_body(scope)
        is_held = False  # whether the end of the answer is held back

        async def receive_counted() -> Message:
            nonlocal is_read
            message = await receive()
            if message["type"] == "http.request":
                connection.body_read(len(message.get("body", b"")))
                is_read = is_read or not message.get("more_body", False)
            return message

        async def send_closing(message: Message) -> None:
            nonlocal is_held
            # Nobody will read the rest of the body: the next request could not be found in it.
            if message["type"] == "http.response.start" and not is_read:
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            if message["type"] == "http.response.body" and not is_read:
                is_held = not message.get("more_body", False)
                message = {**message, "more_body": True}
            try:
                await send(message)
            except RuntimeError:  # uvloop refuses to write to a connection that was cut off
                if not connection.is_lost:
                    raise

        self.n_requests += 1
        connection.request_started()
        try:
            if connection.n_unread > MAX_HEAD_BYTES and _head_bytes(scope) > MAX_HEAD_BYTES:
                await problem_response(_HEAD_TOO_LARGE)(scope, receive_counted, send_closing)
            else:
                await self.app(scope, receive_counted, send_closing)
            if is_held:  # the client has the whole answer: the server closes after the end of it
                await _discard_body(receive_counted, self.limits.linger_seconds)
                is_read = True
                await send_closing({"type": "http.response.body", "body": b""})
        finally:
            connection.request_ended()
            self.n_requests -= 1


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _head_bytes(scope: Scope) -> int:
    target = len(scope["raw_path"]) + len(scope["query_string"])
    return target + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


async def _discard_body(receive: Receive, seconds: float) -> None:
    """Read what a client still sends until it ends, the client leaves, or a limit is reached."""
    n_left = MAX_DISCARDED_BYTES
    with anyio.move_on_after(seconds):
        while n_left > 0:
            message = await receive()
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return
            n_left -= len(message["body"])


class LimitedConnection(asyncio.Protocol):
    """One connection; it is closed when it exceeds a limit."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self.inner, self.connections, self.limits = inner, connections, connections.limits
        self._loop = asyncio.get_running_loop()
        self.is_lost = False
        self._is_refused = False  # answered without the server; what still comes is discarded
        self._is_counted = False  # as one of the open connections
        self._n_requests = 0  # that the application works on
        self.n_unread = 0  # bytes since the last answer, less the body as far as it was read
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the head of the first request."""
        self._transport = cast("asyncio.Transport", transport)
        if len(self.connections.open) >= self.limits.n_open:
            self.connections.count_closed("refused, too many")
            self._refuse(_TOO_MANY)
            return
        host, port = transport.get_extra_info("peername")[:2]
        self._client: Client = (str(host), int(port))
        self.connections.open[self._client] = self
        self._is_counted = True
        self._wait_for_head()
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self.is_lost = True
        self.connections.n_refused -= self._is_refused
        _cancel(self._head_timer)
        _cancel(self._read_timer)
        if self._is_counted:
            self.connections.open.pop(self._client, None)
            self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data on, and check its amount after the request has started that it completes."""
        self.n_unread += len(data)
        if self._is_refused:
            if self.n_unread > MAX_DISCARDED_BYTES:
                self._transport.abort()
            return
        self.inner.data_received(data)
        if self.n_unread > MAX_HEAD_BYTES:
            self._loop.call_soon(self._check_amount)

    def eof_received(self) -> bool | None:
        """Pass the end of the client's data on."""
        return None if self._is_refused else self.inner.eof_received()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        _cancel(self._read_timer)
        self._read_timer = self._abort_after(self.limits.read_seconds, "not reading the answer")
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Stop waiting: the client has read."""
        _cancel(self._read_timer)
        self.inner.resume_writing()

    def request_started(self) -> None:
        """Stop waiting: the head of a request is complete."""
        self._n_requests += 1
        _cancel(self._head_timer)

    def body_read(self, n_bytes: int) -> None:
        """Count bytes of a body, and the frames that may have been around them."""
        self.n_unread -= n_bytes * (1 + FRAME_BYTES)

    def request_ended(self) -> None:
        """Wait for the head of the next request."""
        self._n_requests -= 1
        self.n_unread = 0
        if not self._transport.is_closing():
            self._wait_for_head()

    def _check_amount(self) -> None:
        if self._transport.is_closing():
            return
        if self._is_refused:
            return
        if self._n_requests == 0 and self.n_unread > MAX_HEAD_BYTES:
            self.connections.count_closed("with too large a head")
            self._refuse(_HEAD_TOO_LARGE)
        elif self.n_unread > MAX_UNREAD_BYTES:
            self.connections.count_closed("with too much around a body")
            self._transport.abort()

    def _refuse(self, problem: ProblemError) -> None:
        """Answer a request that the application never sees; close when the client has read it."""
        self._is_refused = True
        self.connections.n_refused += 1
        answer = problem_response(problem)
        status = answer.status_code
        lines = [b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode())]
        lines += [b"%s: %s" % each for each in answer.raw_headers]
        lines += [b"", bytes(answer.body)]
        self._transport.write(b"\r\n".join(lines))
        if self.connections.n_refused > MAX_REFUSED:
            self._transport.close()
            return
        self._transport.write_eof()
        _cancel(self._head_timer)
        self._head_timer = self._loop.call_later(self.limits.linger_seconds, self._transport.abort)

    def _wait_for_head(self) -> None:
        _cancel(self._head_timer)
        self._head_timer = self._abort_after(self.limits.head_seconds, "without a complete head")

    def _abort_after(self, seconds: float, reason: str) -> asyncio.TimerHandle:
        def abort() -> None:
            self.connections.count_closed(reason)
            self._transport.abort()

        return self._loop.call_later(seconds, abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
