"""The service as a process: listen, load, reload, and stop without dropping a request."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from setrnn.errors import SetRNNError
from setrnn.serve.app import make_app
from setrnn.serve.connections import Client, ConnectionLimits, Connections, LimitedConnection
from setrnn.serve.guards import ApiKeys
from setrnn.serve.listening import OTHER_FILES, describe_stop, port_in_use, raise_open_files
from setrnn.serve.observation import log_failure
from setrnn.serve.registry import Registry
from setrnn.serve.settings import ServeSettings

BACKLOG = 2_048  # connections that may wait to be accepted
STOP_SECONDS = 60  # for current requests to finish
LOG_SECONDS = 0.2  # that a line of the log waits for others
GRACE_SECONDS = 0.2  # in which requests that were sent before the stop are still read

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
    """Serve until SIGTERM or SIGINT, then finish the current requests.

    SIGHUP loads the models whose folders have changed, and the keys. Returns how many requests
    were left unanswered: 0 unless a second SIGINT stops the service at once.
    """
    n_unanswered = run_server(registry, settings, listener, keys, hosts, say, say, greeting)
    say(describe_stop(n_unanswered))
    return n_unanswered


def run_server(
    registry: Registry,
    settings: ServeSettings,
    listener: socket.socket,
    keys: ApiKeys | None,
    hosts: Collection[str] | None,
    say: Say,
    on_ready: Say,
    greeting: str = "",
) -> int:
    """Serve in this process until a signal; return how many requests were left unanswered."""
    log = set_up_log()
    try:
        listener.listen(BACKLOG)
    except OSError as error:  # another process listens there since the port was bound
        raise port_in_use(*listener.getsockname()[:2]) from error
    limits = ConnectionLimits(n_open=_n_connections(settings.max_connections, say))
    opened: dict[Client, LimitedConnection] = {}
    app = make_app(registry, settings, keys, hosts, n_open=opened.__len__)
    server = Server(Connections(app, limits, opened), registry, keys, log, greeting, say, on_ready)
    server.run([listener])
    log.flush()
    if server.failure is not None:
        raise server.failure
    return server.n_unanswered


def _n_connections(wanted: int, say: Say) -> int:
    """Return how many connections the limit of open files allows, at most those wanted."""
    n_files = raise_open_files()
    if n_files is None or wanted <= n_files - OTHER_FILES:
        return wanted
    allowed = max(n_files - OTHER_FILES, 1)
    say(f"At most {allowed} connections: this process may open {n_files} files (ulimit -n).")
    return allowed


def limited_config(connections: Connections) -> uvicorn.Config:
    """Return the settings of a server that limits its connections."""
    return uvicorn.Config(
        connections,
        http=cast("type[asyncio.Protocol]", connections.limit(HttpToolsProtocol)),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


class Server(uvicorn.Server):
    """A server that loads its models while it already answers."""

    def __init__(
        self,
        connections: Connections,
        registry: Registry,
        keys: ApiKeys | None,
        log: BufferedLog,
        greeting: str,
        say: Say,
        on_ready: Say,
    ) -> None:
        super().__init__(limited_config(connections))
        self.registry, self.keys, self.log, self.greeting = registry, keys, log, greeting
        self.say, self.on_ready = say, on_ready
        self.failure: Exception | None = None
        self.n_unanswered = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal, and load the models meanwhile."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_on_loop_error)
        if hasattr(signal, "SIGHUP"):
            reload = partial(loop.call_soon_threadsafe, self._start, self._reload)
            signal.signal(signal.SIGHUP, lambda number, frame: reload())
        self._start(self._load)
        self._start(self.log.flush_regularly)
        await super().serve(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Read the requests that were sent before the stop, then finish all current ones."""
        await asyncio.sleep(GRACE_SECONDS)
        await super().shutdown(sockets)
        assert isinstance(self.config.app, Connections)
        self.n_unanswered = self.config.app.n_requests

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load(self) -> None:
        while not self.started:
            await asyncio.sleep(0.01)
        if self.greeting:
            self.say(self.greeting)
        try:
            if not self.registry.is_ready:
                await asyncio.to_thread(self.registry.load)
            await asyncio.to_thread(set_aside_objects)
        except Exception as error:  # noqa: BLE001 (the command line reports it in one line)
            self.failure, self.should_exit = error, True
            return
        models = (f"{each.name} ({each.tagger.method})" for each in self.registry.models)
        self.on_ready(f"Ready: {', '.join(models)}.")

    async def _reload(self) -> None:
        async with self._reloading:
            if self.keys is not None:
                self.say(_reload_keys(self.keys))
            if not self.registry.is_ready:
                self.say("The models are still being loaded: nothing to reload.")
                return
            lines = await asyncio.to_thread(self.registry.reload)
            await asyncio.to_thread(set_aside_objects)
            for line in lines:
                self.say(line)


class BufferedLog(logging.Handler):
    """Writes lines to standard error together.

    After a write of its own, each request would wait for a busy worker to give up the interpreter
    again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; write all if it reports an error."""
        self.lines.append(self.format(record))
        if record.levelno >= logging.ERROR:
            self.flush()

    def flush(self) -> None:
        """Write the lines kept so far; a closed stream loses them."""
        lines, self.lines = self.lines, []
        if lines:
            with suppress(OSError, ValueError):
                sys.stderr.write("\n".join([*lines, ""]))
                sys.stderr.flush()

    async def flush_regularly(self) -> None:
        """Write the lines a few times per second."""
        while True:
            await asyncio.sleep(LOG_SECONDS)
            self.flush()


def set_aside_objects() -> None:
    """Let garbage collections skip the libraries and the models.

    They stay, and looking at them again and again takes a third of the time of requests.
    """
    gc.collect()
    gc.freeze()


def set_up_log() -> BufferedLog:
    """Write one line per request to standard error, and nothing from the libraries."""
    handler = BufferedLog()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("setrnn.serve")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return handler


def _reload_keys(keys: ApiKeys) -> str:
    try:
        keys.load()
    except SetRNNError as error:
        return f"The API keys stay as they were. {error}"
    return "The API keys are reloaded."


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that no task waits for, without its message."""
    error = context.get("exception")
    if isinstance(error, BaseException):
        log_failure(error)
