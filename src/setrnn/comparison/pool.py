"""Several jobs at once, a fresh process each: a crash is only its own, and so is its memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from setrnn.comparison.records import Failure
from setrnn.errors import SetRNNError
from setrnn.model.devices import n_cores

if TYPE_CHECKING:
    from setrnn.comparison.run import OnProgress

OVER_BUDGET = "over budget"
TICK = 1.0  # seconds in which the caller hears of us, whatever happens
LEAST_PAUSE = 0.2  # seconds between two messages of a job
LEAVING_SECONDS = 30.0  # until a job that has told its result is ended
STOPPING_SECONDS = 120.0  # until a job that was asked to stop is ended
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """Work for a process of its own; it goes there with all it holds."""

    name: str
    work: Callable[[OnProgress], Any]
    log: Path  # what it prints, and where it broke; kept if it fails
    limit_seconds: float | None = None  # after which it is ended


@dataclass(frozen=True)
class Started:
    """A job has begun."""

    job: Job


@dataclass(frozen=True)
class Progressed:
    """A job has told what it does, and which share of it is done."""

    job: Job
    activity: str
    share: float


@dataclass(frozen=True)
class Ended:
    """A job is over: with a value, or with a failure."""

    job: Job
    seconds: float
    value: Any = None
    failure: Failure | None = None


@dataclass(frozen=True)
class Ticked:
    """Nothing happened for a while."""


Event = Started | Progressed | Ended | Ticked


def run_jobs(
    jobs: Sequence[Job], n_jobs: int, on_stop: Callable[[], None] = lambda: None
) -> Generator[Event, None, None]:
    """Run jobs, `n_jobs` at once, in their order; yield what happens as it happens.

    Closed before the end, or stopped by Ctrl-C, it calls `on_stop`, asks the running ones to
    stop, waits until they have saved where they stand, and leaves the others.
    """
    waiting = list(jobs)
    running: dict[Connection, _Child] = {}
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                child = _Child(waiting.pop(0), n_jobs)
                running[child.messages] = child
                yield Started(child.job)
            ready = wait(list(running), TICK)
            if not ready:
                yield Ticked()
            for messages in ready:
                assert isinstance(messages, Connection)
                event = running[messages].read()
                if isinstance(event, Ended):
                    del running[messages]
                yield event
            for child in [each for each in running.values() if each.is_over_limit()]:
                del running[child.messages]
                yield child.end_over_budget()
    finally:
        if running:
            on_stop()
            _stop(list(running.values()))


class _Child:
    """The process of a job, as its parent sees it."""

    def __init__(self, job: Job, n_jobs: int) -> None:
        self.job = job
        self.messages, theirs = multiprocessing.get_context("spawn").Pipe(duplex=False)
        self.process: SpawnProcess = multiprocessing.get_context("spawn").Process(
            target=_work, args=(job, theirs), name=job.name, daemon=True
        )
        job.log.parent.mkdir(parents=True, exist_ok=True)
        self._start = time.monotonic()
        with _threads(max(1, n_cores() // n_jobs)), _interrupts_ignored():
            self.process.start()
        theirs.close()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    def is_over_limit(self) -> bool:
        return self.job.limit_seconds is not None and self.seconds > self.job.limit_seconds

    def read(self) -> Event:
        """Read a message; none means that the process is gone."""
        try:
            kind, *content = self.messages.recv()
        except Exception:  # noqa: BLE001 (a process that dies may send anything, or nothing)
            self._wait()
            return self._end(failure=_death(self.process.exitcode))
        if kind == "progress":
            return Progressed(self.job, *content)
        self._wait()
        return self._end(**{kind: content[0]})

    def end_over_budget(self) -> Ended:
        self.process.kill()
        self.process.join()
        minutes = self.seconds / 60
        message = f"ended after {minutes:.1f} minutes, far over its budget. Raise --budget."
        return self._end(failure=Failure(OVER_BUDGET, message))

    def _wait(self) -> None:
        """Wait for a process that has nothing more to tell, but not for ever."""
        self.process.join(LEAVING_SECONDS)
        self.process.kill()
        self.process.join()

    def _end(self, value: object = None, failure: Failure | None = None) -> Ended:
        self.messages.close()
        log = self.job.log
        if failure is None or (log.exists() and not log.stat().st_size):
            log.unlink(missing_ok=True)
        return Ended(self.job, self.seconds, value, failure)


def _stop(children: Sequence[_Child]) -> None:
    """Ask processes to stop and give them time to save; a second Ctrl-C ends them at once."""
    try:
        for child in children:
            child.process.terminate()
        deadline = time.monotonic() + STOPPING_SECONDS
        for child in children:
            child.process.join(max(0.0, deadline - time.monotonic()))
    finally:
        for child in children:
            child.process.kill()
            child.process.join()
            child.messages.close()
            child.job.log.unlink(missing_ok=True)


def _death(exit_code: int | None) -> Failure:
    """Say why a process is gone that told nothing."""
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name
        why = "; mostly for want of memory. Try fewer --jobs." if name == "SIGKILL" else "."
        return Failure(name, f"its process was ended by {name}{why}")
    return Failure("ended", f"its process ended by itself, with exit code {exit_code}.")


def _work(job: Job, messages: Connection) -> None:
    """Do the job in this process, and send what comes of it."""
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with job.log.open("w", encoding="utf-8") as log:
        for stream in (1, 2):  # what libraries print is not for the screen
            os.dup2(log.fileno(), stream)
    try:
        value = job.work(_Messenger(messages))
    except KeyboardInterrupt:
        return
    except Exception as error:  # noqa: BLE001 (whatever breaks a run is its own failure)
        traceback.print_exc(file=sys.stderr)
        sys.stderr.flush()
        messages.send(("failure", failure_of(error)))
    else:
        messages.send(("value", value))


class _Messenger:
    """Sends progress to the parent, not too often."""

    def __init__(self, messages: Connection) -> None:
        self._messages = messages
        self._said, self._time = "", 0.0

    def __call__(self, activity: str, share: float) -> None:
        now = time.monotonic()
        if activity != self._said or now - self._time >= LEAST_PAUSE:
            self._said, self._time = activity, now
            self._messages.send(("progress", activity, share))


def failure_of(error: Exception) -> Failure:
    """Put an exception into a line: our own say it all, of others the kind tells most."""
    if "out of memory" in str(error) or "GPU's memory" in str(error):
        message = "the GPU's memory does not suffice for so many runs. Try again with fewer --jobs."
        return Failure(type(error).__name__, message)
    message = " ".join(str(error).split())[:300]
    if not isinstance(error, SetRNNError):
        message = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return Failure(type(error).__name__, message)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """Stop this process when its parent is killed: nobody waits for its result."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _threads(n_threads: int) -> Iterator[None]:
    """Let processes started here use so many threads; what the user has set stays."""
    added = [name for name in THREAD_VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(added, str(n_threads)))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Keep Ctrl-C from processes started here: their parent tells them, once, to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        with suppress(TypeError):  # set by something other than Python
            signal.signal(signal.SIGINT, before)
