"""Connections of clients that neither speak nor listen are closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from setrnn.serve.problems import ProblemError, problem_response

HEAD_SECONDS = 10.0  # for the head of a request
LISTEN_SECONDS = 30.0  # for a client to take what is sent


class PatientProtocol(HttpToolsProtocol):
    """HTTP with an end to patience."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 (uvicorn's own)
        super().__init__(*arguments, **options)
        self._patience: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._be_patient("head", HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        for name in list(self._patience):
            self._rest(name)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the rest of the head."""
        self._be_patient("head", HEAD_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._rest("head")
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Wait for the client to take what was sent."""
        self._be_patient("listen", LISTEN_SECONDS)
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client took it."""
        self._rest("listen")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Say in the form of all errors that this is not HTTP."""
        problem = problem_response(ProblemError("bad-request", msg))
        head = [b"%s: %s\r\n" % each for each in problem.raw_headers]
        content = [STATUS_LINE[400], *head, b"connection: close\r\n\r\n", bytes(problem.body)]
        self.transport.write(b"".join(content))
        self.transport.close()

    def _be_patient(self, what: str, seconds: float) -> None:
        self._rest(what)
        self._patience[what] = self.loop.call_later(seconds, self.transport.abort)

    def _rest(self, what: str) -> None:
        if what in self._patience:
            self._patience.pop(what).cancel()
