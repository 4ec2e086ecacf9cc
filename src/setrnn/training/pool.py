"""Run jobs side by side, each in a new process: a crash or a lack of memory ends only one job."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from setrnn.errors import SetRNNError, find_memory_problem, is_full_gpu
from setrnn.progress import OnProgress, Progress, ignore_progress, log

TICK = 1.0  # seconds after which a wait ends, so that Ctrl-C is heard on every system
LEAVING_SECONDS = 30.0  # a process that has sent its result is killed after them
STOPPING_SECONDS = 120.0  # a process that was asked to stop is killed after them
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Failure:
    """Why a job has no result."""

    kind: str  # the exception
    message: str


def describe_error(error: Exception) -> Failure:
    """Describe an error in one line, with its class unless it is our own."""
    is_ours = isinstance(error, SetRNNError)
    message = find_memory_problem(error) or " ".join(str(error).split())[:300]
    if is_full_gpu(error) or is_full_gpu(error.__cause__):
        message += " Try fewer jobs at a time."
    if not is_ours:
        message = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return Failure(type(error).__name__, message)


def stop_with_parent() -> None:
    """Stop this process when its parent is killed: nobody waits for the result."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def starting_processes(n_threads: int) -> Iterator[None]:
    """Limit the threads of processes started inside, and let them ignore Ctrl-C.

    Variables that the user has set stay. Their parent asks the processes, once, to stop.
    """
    added = [name for name in THREAD_VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(added, str(n_threads)))
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if is_main else None
    try:
        yield
    finally:
        if before is not None:  # None: it was not set by Python
            signal.signal(signal.SIGINT, before)
        for name in added:
            del os.environ[name]


@dataclass(frozen=True)
class Job:
    """Work for one process; everything in it is sent there."""

    name: str
    work: Callable[[OnProgress], Any]
    log: Path  # the output and the traceback of the work; removed if it succeeds
    part_of: str = "jobs"  # the activity that the job's progress is part of
    after: tuple[str, ...] = ()  # the jobs that must have ended before, by their names


@dataclass(frozen=True)
class Ended:
    """The end of a job: a value, or a failure."""

    job: Job
    seconds: float
    value: Any = None
    failure: Failure | None = None


def run_jobs(
    jobs: Sequence[Job], n_jobs: int, on_progress: OnProgress = ignore_progress, n_threads: int = 1
) -> Generator[Ended, None, None]:
    """Run jobs in their order, `n_jobs` at a time with `n_threads` each, and yield each at its end.

    A job that must wait for others is passed over until they have ended, failed or not.

    When the generator is closed early, or on Ctrl-C, the running jobs are asked to stop and get
    time to save; the others never start. `on_progress` is called with the progress of each job,
    under the job's name.
    """
    waiting, running = list(jobs), dict[Connection, _Running]()
    try:
        while waiting or running:
            names = [each.job.name for each in running.values()]
            for job in take_ready(waiting, names, n_jobs):
                started = _Running(job, n_threads, on_progress)
                running[started.messages] = started
            for messages in wait(list(running), TICK):
                assert isinstance(messages, Connection)
                if (ended := running[messages].read()) is not None:
                    del running[messages]
                    yield ended
    finally:
        if running:
            log.info("Stopping: the running jobs save their state. Ctrl-C again ends them at once.")
            _stop(list(running.values()))


def take_ready(waiting: list[Job], running: Collection[str], max_running: int | None) -> list[Job]:
    """Take the first waiting jobs that wait for no other one, as many as there is room for.

    Example:
        >>> from pathlib import Path
        >>> first, second, third = (
        ...     Job(name, print, Path(name), after=after)
        ...     for name, after in (("b", ("a",)), ("a", ()), ("c", ()))
        ... )
        >>> [job.name for job in take_ready([first, second, third], [], 2)]
        ['a', 'c']
    """
    unended = {*running, *(job.name for job in waiting)}
    ready = [job for job in waiting if unended.isdisjoint(job.after)]
    assert ready or running or not waiting, "jobs wait for each other"
    taken = ready if max_running is None else ready[: max(max_running - len(running), 0)]
    for job in taken:
        waiting.remove(job)
    return taken


class _Running:
    """A job in its process, and our end of the pipe, which brings pairs of a kind and a content.

    The process does not hear Ctrl-C, and it stops when its parent is killed.
    """

    def __init__(self, job: Job, n_threads: int, on_progress: OnProgress) -> None:
        self.job, self._on_progress = job, on_progress
        job.log.parent.mkdir(parents=True, exist_ok=True)
        self._start = time.monotonic()
        context = multiprocessing.get_context("spawn")
        self.messages, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(job, theirs), daemon=True)
        with starting_processes(n_threads):
            self.process.start()
        theirs.close()
        self._report(Progress("", 0.0, 1.0, unit="", detail="starting"))

    def read(self) -> Ended | None:
        """Read one message; return the end of the job, or None if the job continues."""
        try:
            kind, content = self.messages.recv()
        except Exception:  # noqa: BLE001 (a dying process may send anything, or nothing)
            self.end(LEAVING_SECONDS)
            return self._finish(failure=self._describe_death())
        if kind == "progress":
            self._report(content)
            return None
        self.end(LEAVING_SECONDS)
        return self._finish(**{kind: content})

    def end(self, seconds: float = 0.0) -> None:
        """Wait until the process has ended; kill it if it does not."""
        self.process.join(max(0.0, seconds))
        self.process.kill()
        self.process.join()
        self.messages.close()

    def _report(self, event: Progress) -> None:
        self._on_progress(replace(event, activity=self.job.name, part_of=self.job.part_of))

    def _describe_death(self) -> Failure:
        """Describe the end of the process, which has sent no result."""
        code = self.process.exitcode
        if code is None or code >= 0:
            return Failure("ended", f"its process ended with exit code {code}, without a result.")
        name = signal.Signals(-code).name
        why = ", usually out of memory. Try fewer jobs." if name == "SIGKILL" else "."
        return Failure(name, f"killed by {name}{why}")

    def _finish(self, value: object = None, failure: Failure | None = None) -> Ended:
        log = self.job.log
        if failure is None or (log.exists() and not log.stat().st_size):
            log.unlink(missing_ok=True)
        return Ended(self.job, time.monotonic() - self._start, value, failure)


def _stop(running: Sequence[_Running]) -> None:
    """Ask jobs to stop and give them time to save; a second Ctrl-C kills them."""
    try:
        for each in running:
            each.process.terminate()
        deadline = time.monotonic() + STOPPING_SECONDS
        for each in running:
            each.process.join(max(0.0, deadline - time.monotonic()))
    finally:
        for each in running:
            each.end()
            each.job.log.unlink(missing_ok=True)


def _work(job: Job, messages: Connection) -> None:
    """Do the job in this process until it or the parent ends, and send its result."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # raises KeyboardInterrupt
    threading.Thread(target=stop_with_parent, daemon=True).start()
    with job.log.open("w", encoding="utf-8") as log:
        for stream in (1, 2):  # the output of libraries does not belong on the screen
            os.dup2(log.fileno(), stream)
    with suppress(KeyboardInterrupt):
        try:
            value = job.work(lambda event: messages.send(("progress", event)))
        except Exception as error:  # noqa: BLE001 (any error is the failure of this job alone)
            traceback.print_exc(file=sys.stderr)
            sys.stderr.flush()
            messages.send(("failure", describe_error(error)))
        else:
            messages.send(("value", value))
