"""Connections of clients that do not speak, do not listen, or speak too much are closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from setrnn.serve.problems import ProblemError, problem_response

HEAD_SECONDS = 10.0  # for the head of a request
LISTEN_SECONDS = 30.0  # for a client to take what is sent
MAX_HEAD_BYTES = 64 << 10
FRAME_BYTES = 8  # around a byte of a body, in chunks of one


class PatientProtocol(HttpToolsProtocol):
    """HTTP with an end to patience."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 (uvicorn's own)
        super().__init__(*arguments, **options)
        self._patience: dict[str, asyncio.TimerHandle] = {}
        self._answered: RequestResponseCycle | None = None  # others may wait behind it
        self._is_head = True
        self._n_messages = 0  # that have begun
        self._n_body = self._n_body_now = 0  # bytes of the body, and of it in the last data
        self._n_beside = 0  # bytes of the message beside its body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._be_patient("head", HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        for name in list(self._patience):
            self._rest(name)
        self._tell_who_answers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless what is beside the body has no end."""
        n_messages, self._n_body_now = self._n_messages, 0
        super().data_received(data)
        if self._n_messages == n_messages or n_messages == 0:
            self._n_beside += len(data) - self._n_body_now
        # Small chunks have more around them than in them.
        is_too_much = self._n_beside > MAX_HEAD_BYTES + FRAME_BYTES * self._n_body
        if is_too_much and not self.transport.is_closing():
            self._cut_short()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; what comes behind the body is of no use."""
        if self._is_head:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Count the body."""
        self._n_body_now += len(body)
        self._n_body += len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Close where the request was answered before it was whole: nobody reads the rest."""
        super().on_response_complete()
        if self._answered is not None and self._answered.more_body:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Wait for the rest of the head."""
        self._is_head = True
        self._n_messages += 1
        self._n_body = self._n_beside = 0
        self._be_patient("head", HEAD_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._is_head = False
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
        self._refuse(ProblemError("bad-request", msg))

    def _cut_short(self) -> None:
        if self._is_head:
            limit = f"A head may have {MAX_HEAD_BYTES:,} bytes."
            self._refuse(ProblemError("head-too-large", limit))
        else:
            self._give_up()

    def _refuse(self, problem: ProblemError) -> None:
        """Answer a request that no application has seen, and close."""
        answer = problem_response(problem)
        status = STATUS_LINE[answer.status_code]
        head = [b"%s: %s\r\n" % each for each in answer.raw_headers]
        content = [status, *head, b"connection: close\r\n\r\n", bytes(answer.body)]
        self.transport.write(b"".join(content))
        self.transport.close()

    def _be_patient(self, what: str, seconds: float) -> None:
        self._rest(what)
        self._patience[what] = self.loop.call_later(seconds, self._give_up)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # noqa: ANN401
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _give_up(self) -> None:
        self.transport.abort()
        self._tell_who_answers()
        if self.flow is not None:
            self.flow.resume_writing()

    def _tell_who_answers(self) -> None:
        """Let what is being answered know that nobody hears it; uvicorn tells the last request."""
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()

    def _rest(self, what: str) -> None:
        if what in self._patience:
            self._patience.pop(what).cancel()
