"""Limits on connections: on slow heads, large heads, unread answers and what surrounds a body.

uvicorn has no options for these. `LimitedConnection` stands between asyncio and the server's own
protocol and passes every event on; it uses asyncio's protocol interface only. `Connections`, around
the ASGI application, tells it when a request starts, how much of its body was read, and when it is
answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setrnn.serve.problems import ProblemError, problem_response

MAX_HEAD_BYTES = 64 << 10
# Received but not read by the application: what asyncio and uvicorn buffer, with a wide margin.
MAX_UNREAD_BYTES = 1 << 20
FRAME_BYTES = 8  # around each byte of a body that is sent in chunks of one byte

Client = tuple[str, int]


@dataclass(frozen=True)
class ConnectionLimits:
    """How long a connection may wait.

    Args:
        head_seconds: for the complete head of the next request.
        read_seconds: for the client to read what was sent.
    """

    head_seconds: float = 10.0
    read_seconds: float = 30.0


class Connections:
    """The open connections by client address, and their current requests."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits | None = None) -> None:
        self.app = app
        self.limits = ConnectionLimits() if limits is None else limits
        self.n_requests = 0
        self.open: dict[Client, LimitedConnection] = {}

    def limit(self, inner: Callable[..., asyncio.Protocol]) -> Callable[..., asyncio.Protocol]:
        """Put limits around the protocol that a server makes per connection."""

        def make(**options: Any) -> LimitedConnection:  # noqa: ANN401 (the server's own)
            return LimitedConnection(inner(**options), self)

        return make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and keep its connection informed."""
        client = scope.get("client")
        connection = None if client is None else self.open.get(tuple(client))
        if scope["type"] != "http" or connection is None:
            await self.app(scope, receive, send)
            return
        is_read = not _has_body(scope)

        async def receive_counted() -> Message:
            nonlocal is_read
            message = await receive()
            if message["type"] == "http.request":
                connection.body_read(len(message.get("body", b"")))
                is_read = is_read or not message.get("more_body", False)
            return message

        async def send_closing(message: Message) -> None:
            # Nobody will read the rest of the body: the next request could not be found in it.
            if message["type"] == "http.response.start" and not is_read:
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            try:
                await send(message)
            except RuntimeError:  # uvloop refuses to write to a connection that was cut off
                if not connection.is_lost:
                    raise

        self.n_requests += 1
        connection.request_started()
        try:
            await self.app(scope, receive_counted, send_closing)
        finally:
            connection.request_ended()
            self.n_requests -= 1


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


class LimitedConnection(asyncio.Protocol):
    """One connection; it is closed when it exceeds a limit."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self.inner, self.connections, self.limits = inner, connections, connections.limits
        self._loop = asyncio.get_running_loop()
        self.is_lost = False
        self._n_requests = 0  # that the application works on
        self._n_unread = 0  # bytes since the last answer, less the body as far as it was read
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the head of the first request."""
        self._transport = cast("asyncio.Transport", transport)
        host, port = transport.get_extra_info("peername")[:2]
        self._client: Client = (str(host), int(port))
        self.connections.open[self._client] = self
        self._wait_for_head()
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self.is_lost = True
        self.connections.open.pop(self._client, None)
        _cancel(self._head_timer)
        _cancel(self._read_timer)
        self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data on, and check its amount after the request has started that it completes."""
        self._n_unread += len(data)
        self.inner.data_received(data)
        if self._n_unread > MAX_HEAD_BYTES:
            self._loop.call_soon(self._check_amount)

    def eof_received(self) -> bool | None:
        """Pass the end of the client's data on."""
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        _cancel(self._read_timer)
        self._read_timer = self._loop.call_later(self.limits.read_seconds, self._transport.abort)
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
        self._n_unread -= n_bytes * (1 + FRAME_BYTES)

    def request_ended(self) -> None:
        """Wait for the head of the next request."""
        self._n_requests -= 1
        self._n_unread = 0
        if not self._transport.is_closing():
            self._wait_for_head()

    def _check_amount(self) -> None:
        if self._transport.is_closing():
            return
        if self._n_requests == 0 and self._n_unread > MAX_HEAD_BYTES:
            self._refuse_head()
        elif self._n_unread > MAX_UNREAD_BYTES:
            self._transport.abort()

    def _refuse_head(self) -> None:
        """Answer a request that the application never sees, and close."""
        limit = f"The head of a request may have {MAX_HEAD_BYTES:,} bytes."
        answer = problem_response(ProblemError("head-too-large", limit))
        head = [b"%s: %s\r\n" % each for each in answer.raw_headers]
        status = b"HTTP/1.1 %d Request Header Fields Too Large\r\n" % answer.status_code
        close = b"connection: close\r\n\r\n"
        self._transport.write(b"".join([status, *head, close, bytes(answer.body)]))
        self._transport.close()

    def _wait_for_head(self) -> None:
        _cancel(self._head_timer)
        self._head_timer = self._loop.call_later(self.limits.head_seconds, self._transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
