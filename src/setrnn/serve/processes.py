"""The service in several processes that share one address, and the memory of the models."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING, Any

from setrnn.errors import ConfigError, SetRNNError
from setrnn.serve.listening import EarlySignals, bind_address, describe_stop
from setrnn.serve.settings import ServeSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.context import ForkServerContext, SpawnContext

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where the processes add up their metrics
RESTART_SECONDS = 1.0  # until a process that has ended is replaced
LOOK_SECONDS = 1.0  # between two looks at the processes
# Of a process that is not ready. Windows has no SIGHUP; `reserve_address` refuses it later.
HELD_SIGNALS = {
    number for number in signal.Signals if number.name in {"SIGTERM", "SIGINT", "SIGHUP"}
}
READY, SAID, UNANSWERED, FAILED = "ready", "said", "unanswered", "failed"


@dataclass(frozen=True)
class Share:
    """What one of the processes serves, and where."""

    folders: Mapping[str, Path]
    device: str
    settings: ServeSettings  # its share of the limits
    host: str
    port: int
    key_file: Path | None
    hosts: Collection[str] | None
    threads: int
    n_processes: int
    weights: Path | None = None  # where the processes share the weights of the models


def reserve_address(listener: socket.socket, host: str) -> socket.socket:
    """Replace a bound socket by one that lets other processes listen on the same address.

    The given one has shown that no other program uses the address.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigError("--processes needs a system on which processes can share a port.")
    port = listener.getsockname()[1]
    listener.close()
    return bind_address(host, port, is_shared=True)


def serve_in_processes(share: Share, greeting: str, say: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT; return how many requests were left unanswered.

    SIGHUP, SIGTERM and SIGINT reach all processes. A process that ends is replaced.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="setrnn-metrics-"))
        stack.enter_context(_environment(METRICS_FOLDER, folder))
        share = replace(share, weights=Path(folder) / "weights")
        supervisor = stack.enter_context(_Supervisor(share, Path(folder), say).handling_signals())
        say(greeting)
        n_unanswered = supervisor.run()
        say(describe_stop(n_unanswered))
        return n_unanswered


@dataclass
class _Child:
    """One process, seen from the one that started it."""

    number: int
    process: BaseProcess
    pipe: Connection
    is_ready: bool = False
    failure: str = ""

    @property
    def end(self) -> int:
        """What `wait` returns when it has ended."""
        return self.process.sentinel

    def signal(self, number: int) -> None:
        """Send a signal, if the process still runs."""
        with suppress(ProcessLookupError):
            if self.process.pid is not None and self.process.exitcode is None:
                os.kill(self.process.pid, number)


@dataclass
class _Supervisor:
    """Starts the processes, passes signals on, and adds up what they report."""

    share: Share
    metrics: Path
    say: Callable[[str], None]
    children: dict[int, _Child] = field(default_factory=dict)
    is_stopping: bool = False
    was_ready: bool = False
    failure: str = ""
    n_unanswered: int = 0

    def run(self) -> int:
        """Run until all processes have ended."""
        for number in range(1, self.share.n_processes + 1):
            self._start(number)
        while self.children:
            if self.is_stopping:  # a signal is lost while a process installs its handlers
                self._stop(signal.SIGTERM)
            changed = wait(
                [end for child in self.children.values() for end in (child.pipe, child.end)],
                LOOK_SECONDS,
            )
            for child in [*self.children.values()]:
                if child.pipe in changed:
                    self._read(child)
                if child.end in changed:
                    self._end(child)
        if self.failure:
            raise SetRNNError(self.failure)
        return self.n_unanswered

    @contextmanager
    def handling_signals(self) -> Iterator[_Supervisor]:
        """Pass signals on to the processes."""
        handlers = {signal.SIGTERM: self._stop, signal.SIGINT: self._stop}
        handlers[signal.SIGHUP] = self._reload
        before = {number: signal.signal(number, each) for number, each in handlers.items()}
        try:
            yield self
        finally:
            for child in self.children.values():
                child.signal(signal.SIGKILL)
            for number, each in before.items():
                signal.signal(number, each)

    def _stop(self, number: int, frame: FrameType | None = None) -> None:
        # A second SIGINT stops at once; the first one may have been sent to the whole group.
        again = self.is_stopping and number == signal.SIGINT
        self.is_stopping = True
        for child in self.children.values():
            child.signal(signal.SIGINT if again else signal.SIGTERM)

    def _reload(self, number: int, frame: FrameType | None = None) -> None:
        for child in self.children.values():
            if child.is_ready:  # the others are about to load
                child.signal(number)

    def _start(self, number: int) -> None:
        context = _fork_context()
        pipe, its_pipe = context.Pipe()
        arguments = (self.share, its_pipe, self.was_ready)
        process = context.Process(target=_serve, args=arguments, daemon=False)
        with _held_signals():
            process.start()
        its_pipe.close()
        self.children[number] = _Child(number, process, pipe)
        if self.is_stopping:  # a signal came meanwhile
            self.children[number].signal(signal.SIGTERM)

    def _read(self, child: _Child) -> None:
        """Take the reports of a process."""
        try:
            while child.pipe.poll():
                kind, what = child.pipe.recv()
                if kind == READY:
                    child.is_ready = True
                    self._say_ready(what)
                elif kind == SAID:
                    self.say(f"Process {child.number}: {what}")
                elif kind == UNANSWERED:
                    self.n_unanswered += what
                elif kind == FAILED:
                    child.failure = what
        except (EOFError, OSError):
            child.process.join()  # its end is the next event

    def _say_ready(self, text: str) -> None:
        if not self.was_ready and all(child.is_ready for child in self.children.values()):
            self.was_ready = len(self.children) == self.share.n_processes
            if self.was_ready:
                self.say(f"{text.removesuffix('.')}, in {self.share.n_processes} processes.")

    def _end(self, child: _Child) -> None:
        """Replace a process that has ended, unless all should."""
        self._read(child)
        child.process.join()
        code = child.process.exitcode or 0
        child.pipe.close()
        del self.children[child.number]
        self._forget_metrics(child)
        if self.is_stopping:
            return
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        if child.failure or not child.is_ready:
            self.failure = child.failure or (
                f"A process of the service ended before it was ready ({how}). Is there enough "
                "memory for --processes?"
            )
            self._stop(signal.SIGTERM)
            return
        self.say(f"Process {child.number} ended ({how}): another is started.")
        time.sleep(RESTART_SECONDS)
        if not self.is_stopping:
            self._start(child.number)

    def _forget_metrics(self, child: _Child) -> None:
        """Remove the current values of a process that has ended; its counts stay."""
        for file in self.metrics.glob(f"gauge_live*_{child.process.pid}.db"):
            file.unlink(missing_ok=True)


def _fork_context() -> ForkServerContext | SpawnContext:
    """Return how processes are started: on Linux, as copies of one that has the libraries.

    Copies share the memory of the libraries, 150 MB each, and start within a second.
    """
    if sys.platform != "linux":  # libraries of other systems do not work in copies
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["setrnn.serve.preloaded"])
    return context


@contextmanager
def _held_signals() -> Iterator[None]:
    """Hold back signals, also in the process that starts now, until it takes them."""
    resource_tracker.ensure_running()  # started later, it would let them through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(share: Share, pipe: Connection, is_later: bool) -> None:
    """Serve in a process of its own, until a signal or the end of the process that started it.

    A later one replaces another: it takes no request away from the others before it can answer.
    """
    os.setpgid(0, 0)  # signals of the terminal come from the parent alone
    threading.Thread(target=_stop_with_parent, args=(pipe,), daemon=True).start()
    with EarlySignals(lambda text: None).handled() as signals:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)
        try:
            pipe.send((UNANSWERED, _run(share, pipe, signals, is_later)))
        except SetRNNError as error:
            pipe.send((FAILED, str(error)))


def _run(share: Share, pipe: Connection, signals: EarlySignals, is_later: bool) -> int:
    import torch

    from setrnn.serve.batching import default_workers
    from setrnn.serve.guards import ApiKeys
    from setrnn.serve.registry import Registry
    from setrnn.serve.server import run_server

    torch.set_num_threads(share.threads)
    workers = max(default_workers(share.device) // share.n_processes, 1)
    registry = Registry(share.folders, share.device, share.weights)
    if is_later:
        registry.load()
    signals.is_serving = True
    return run_server(
        registry,
        share.settings.with_workers(workers),
        bind_address(share.host, share.port, is_shared=True),
        None if share.key_file is None else ApiKeys(share.key_file),
        share.hosts,
        say=lambda text: pipe.send((SAID, text)),
        on_ready=lambda text: pipe.send((READY, text)),
    )


def _stop_with_parent(pipe: Connection) -> None:
    """Stop when the process at the other end has ended, whatever the reason."""
    with suppress(EOFError, OSError):
        pipe.recv()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before: Any = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
