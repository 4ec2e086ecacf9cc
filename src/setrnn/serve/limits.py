"""Bodies read whole before anything else is done, within bounds of size and time."""

from __future__ import annotations

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setrnn.serve.problems import ProblemError, problem_response
from setrnn.serve.settings import ServeSettings

TIMES_SILENT = 6  # a body may take so many times the longest silence in all
SMALL_BODY = 64 << 10  # bytes; of these there is always room, whatever large ones are under way


class ClientGoneError(Exception):
    """The client has left before its request was whole."""


class LimitBodies:
    """Refuse bodies that are too large, too slow, or too many at once."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings
        self.n_held = 0  # bytes of all requests under way
        self.small_body = min(SMALL_BODY, settings.max_body_bytes // 16)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, and hand it on in one piece."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        body = bytearray()
        try:
            self._check_length(scope)
            await self._read(receive, body)
            await self.app(scope, _replayed(bytes(body), receive), send)
        except ProblemError as problem:
            await problem_response(problem)(scope, receive, send)
        except ClientGoneError:
            pass
        finally:
            self.n_held -= len(body)

    def _check_length(self, scope: Scope) -> None:
        """Refuse a body by what its header says, before reading it."""
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if lengths and lengths[0].isdigit() and int(lengths[0]) > self.settings.max_body_bytes:
            raise self._too_large()

    async def _read(self, receive: Receive, body: bytearray) -> None:
        longest = self.settings.body_seconds
        end = anyio.current_time() + longest * TIMES_SILENT
        with anyio.move_on_after(longest) as patience:
            while True:
                message = await receive()
                patience.deadline = min(anyio.current_time() + longest, end)
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                part = message.get("body", b"")
                body += part
                self.n_held += len(part)
                if len(body) > self.settings.max_body_bytes:
                    raise self._too_large()
                if len(body) > self.small_body and self.n_held > self.settings.max_held_bytes:
                    raise _too_many()
                if not message.get("more_body", False):
                    return
        # However patience ended, the body is not whole.
        raise ProblemError(
            "too-slow",
            f"Nothing of the body came for {longest:g} seconds. Send it at once.",
            headers={"Connection": "close"},
        )

    def _too_large(self) -> ProblemError:
        return ProblemError(
            "body-too-large",
            f"A body may have {self.settings.max_body_bytes:,} bytes. Send fewer texts a request.",
            headers={"Connection": "close"},
        )


def _too_many() -> ProblemError:
    return ProblemError(
        "queue-full",
        "Too many requests at once. Try again after the seconds in the header Retry-After.",
        headers={"Connection": "close", "Retry-After": "1"},
    )


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Give the body in one piece; then what the client does next: it can only leave."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
