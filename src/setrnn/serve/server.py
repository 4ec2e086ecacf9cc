"""The service as a process: it listens, loads, reloads, and ends without dropping a request."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn

from setrnn.errors import SetRNNError
from setrnn.serve.access_log import log_failure
from setrnn.serve.app import make_app
from setrnn.serve.keys import ApiKeys
from setrnn.serve.listening import BACKLOG, in_use
from setrnn.serve.protocol import PatientProtocol
from setrnn.serve.registry import Registry
from setrnn.serve.settings import ServeSettings

LONGEST_GOODBYE = 60  # seconds for what is in flight when it is to end
LAST_CALL = 0.2  # seconds in which it still reads what was sent before it was to end
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Say = Callable[[str], None]


def serve(
    registry: Registry,
    settings: ServeSettings,
    listener: socket.socket,
    keys: ApiKeys | None,
    hosts: Collection[str] | None,
    greeting: str,
    say: Say,
) -> int:
    """Serve until SIGTERM or SIGINT, then finish what is in flight.

    SIGHUP loads the models anew whose folders have changed, and the keys. Returns how many
    requests were left unanswered: some only if it is made to end at once.
    """
    set_up_log()
    config = uvicorn.Config(
        make_app(registry, settings, keys, hosts),
        http=PatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=LONGEST_GOODBYE,
    )
    server = _Server(config, registry, keys, greeting, say)
    server.run([listener])
    if server.failure is not None:
        raise server.failure
    left = server.n_unanswered
    if left:
        say(f"Stopped; {left} requests were refused or left unanswered.")
    else:
        say("Stopped; nothing was left unanswered.")
    return left


class _Server(uvicorn.Server):
    """uvicorn, with our signals, and models that are loaded while it already answers."""

    def __init__(
        self,
        config: uvicorn.Config,
        registry: Registry,
        keys: ApiKeys | None,
        greeting: str,
        say: Say,
    ) -> None:
        super().__init__(config)
        self.registry, self.keys, self.greeting, self.say = registry, keys, greeting, say
        self.failure: Exception | None = None
        self.n_unanswered = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and begin to load."""
        asyncio.get_running_loop().set_exception_handler(_on_loop_error)
        try:
            await super().startup(sockets)
        except OSError as error:  # another took the port since it was ours
            assert sockets
            self.failure = in_use(*sockets[0].getsockname()[:2])
            self.failure.__cause__, self.should_exit = error, True
            return
        self.say(self.greeting)
        self._start(self._load())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Read what was sent before, then finish what is in flight."""
        await asyncio.sleep(LAST_CALL)
        await super().shutdown(sockets)
        self.n_unanswered = len(self.server_state.tasks)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals while it runs; none is passed on, so that the end is a good one."""
        loop = asyncio.get_running_loop()

        def reload(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(lambda: self._start(self._reload()))

        handlers: dict[int, Any] = dict.fromkeys(STOP_SIGNALS, self.handle_exit)
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = reload
        before = {number: signal.signal(number, each) for number, each in handlers.items()}
        try:
            yield
        finally:
            for number, each in before.items():
                signal.signal(number, each)

    def _start(self, work: Any) -> None:  # noqa: ANN401 (a coroutine)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load(self) -> None:
        try:
            await asyncio.to_thread(self.registry.load)
        except Exception as error:  # noqa: BLE001 (said by the command line, in one line)
            self.failure, self.should_exit = error, True
            return
        models = (f"{each.name} ({each.tagger.method})" for each in self.registry.models)
        self.say(f"Ready: {', '.join(models)}.")

    async def _reload(self) -> None:
        async with self._reloading:
            if self.keys is not None:
                self.say(_reloaded_keys(self.keys))
            if not self.registry.is_ready:
                self.say("Still loading: nothing to load anew.")
                return
            for line in await asyncio.to_thread(self.registry.reload):
                self.say(line)


def set_up_log() -> None:
    """Write one line a request to standard error; of the libraries only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("setrnn.serve")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _reloaded_keys(keys: ApiKeys) -> str:
    try:
        keys.load()
    except SetRNNError as error:
        return f"The keys stay as they were. {error}"
    return "The keys are read anew."


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error nobody waits for, without its message."""
    error = context.get("exception")
    if isinstance(error, BaseException):
        log_failure(error)
