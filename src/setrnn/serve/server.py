"""The service as a process: load, reload, and stop without dropping a request."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue

import uvicorn

from setrnn.errors import SetRNNError
from setrnn.progress import log
from setrnn.serve.app import make_app
from setrnn.serve.registry import Registry
from setrnn.serve.settings import ApiKeys, ServeSettings

STOP_SECONDS = 60  # for current requests to finish
GRACE_SECONDS = 0.2  # in which requests that were sent before the stop are still read
KEEP_ALIVE_SECONDS = 75  # more than a proxy keeps idle connections, so that it closes them


def serve(
    registry: Registry,
    settings: ServeSettings,
    listener: socket.socket,
    keys: ApiKeys | None,
    hosts: Collection[str] | None,
    greeting: str,
) -> int:
    """Serve until SIGTERM or SIGINT, then finish the current requests.

    The greeting is logged once the models are loaded. SIGHUP loads the models whose folders have
    changed, and the keys. Returns how many requests were left unanswered: 0 unless a second SIGINT
    stops the service at once, or a client does not finish its request.
    """
    server = Server(registry, settings, keys, hosts, greeting)
    # uvicorn raises the signal that has stopped it again.
    with logging_in_a_thread(), suppress(KeyboardInterrupt):
        server.run([listener])
    if server.failure is not None:
        raise server.failure
    if server.n_unanswered:
        log.info("Stopped; %d requests were refused or left unanswered.", server.n_unanswered)
    else:
        log.info("Stopped; all requests were answered.")
    return server.n_unanswered


class Server(uvicorn.Server):
    """A server that loads its models while it already answers."""

    def __init__(
        self,
        registry: Registry,
        settings: ServeSettings,
        keys: ApiKeys | None,
        hosts: Collection[str] | None,
        greeting: str,
    ) -> None:
        config = uvicorn.Config(
            make_app(registry, settings, keys, hosts, lambda: len(self.server_state.connections)),
            http="httptools",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=settings.max_connections,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        super().__init__(config)
        self.registry, self.keys, self.greeting = registry, keys, greeting
        self.failure: Exception | None = None
        self.n_unanswered = 0
        self._loader = ThreadPoolExecutor(1, "setrnn-load")  # one after the other

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, and begin to load the models."""
        await super().startup(sockets)
        self._loader.submit(self._load)
        if hasattr(signal, "SIGHUP"):
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._loader.submit, self._reload)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Read the requests that were sent before the stop, then finish all current ones."""
        await asyncio.sleep(GRACE_SECONDS)
        await super().shutdown(sockets)
        self.n_unanswered = len(self.server_state.tasks)

    def _load(self) -> None:
        try:
            self.registry.load()
        except Exception as error:  # noqa: BLE001 (the command line reports it in one line)
            self.failure, self.should_exit = error, True
            return
        set_aside_objects()
        log.info(self.greeting)
        models = (f"{each.name} ({each.tagger.method})" for each in self.registry.models.values())
        log.info("Ready: %s.", ", ".join(models))

    def _reload(self) -> None:
        if self.keys is not None:
            try:
                self.keys.load()
                log.info("The API keys are reloaded.")
            except SetRNNError as error:
                log.info("The API keys stay as they were. %s", error)
        self.registry.reload()
        set_aside_objects()


def set_aside_objects() -> None:
    """Let garbage collections skip the libraries and the models.

    They stay, and looking at them again and again takes a third of the time of requests.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def logging_in_a_thread() -> Iterator[None]:
    """Log one line per request to standard error, and nothing from the libraries.

    A thread writes the lines: after a write of its own, each request would wait for a busy worker
    to give up the interpreter again.
    """
    records, lines = SimpleQueue[logging.LogRecord](), logging.StreamHandler()
    lines.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("setrnn.serve")
    logger.handlers, logger.propagate = [QueueHandler(records)], False
    logger.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    listener = QueueListener(records, lines)
    listener.start()
    try:
        yield
    finally:
        listener.stop()
