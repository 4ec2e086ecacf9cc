"""Run jobs side by side, each in a new process: a crash or a lack of memory ends only one job."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Any

from setrnn.errors import SetRNNError, find_memory_problem
from setrnn.progress import Note, OnProgress, Progress, ignore_progress

OVER_BUDGET = "over budget"
FULL_GPU = "full GPU"
CROWDED_GPU = "crowded GPU"  # full, and other processes hold a part of its memory
# In the messages of torch, of the libraries that it calls, and in ours.
FULL_GPU_WORDS = ("out of memory", "STATUS_ALLOC_FAILED", "GPU's memory")
TICK = 1.0  # seconds after which a wait ends, so that Ctrl-C is heard on every system
LEAST_PAUSE = 0.2  # seconds between two messages of a job that say the same
LEAVING_SECONDS = 30.0  # a process that has sent its result is killed after them
CROWDED_SECONDS = 30.0  # a job that other programs leave no memory is run again after them
MOST_TRIES = 10  # of such a job, alone
CONTEXT_BYTES = 1 << 30  # what a process holds of a GPU beside its tensors, at most
STOPPING_SECONDS = 120.0  # a process that was asked to stop is killed after them
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Failure:
    """Why a job has no result."""

    kind: str  # the exception
    message: str


@dataclass(frozen=True)
class Job:
    """Work for one process; everything in it is sent there."""

    name: str
    work: Callable[[OnProgress], Any]
    log: Path  # the output and the traceback of the work; removed if it succeeds
    limit_seconds: float | None = None  # the process is killed after them
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
    jobs: Sequence[Job],
    n_jobs: int,
    on_progress: OnProgress = ignore_progress,
    n_threads: int = 1,
    most_tries: int = MOST_TRIES,
) -> Generator[Ended, None, None]:
    """Run jobs in their order, `n_jobs` at a time with `n_threads` each, and yield each at its end.

    A job that must wait for others is passed over until they have ended, failed or not. A job that
    finds the GPU's memory full beside others is run again with fewer at a time; after each job that
    succeeds, one more is tried. A job that other programs leave no memory is run again after a
    pause, `most_tries` times in all.

    When the generator is closed early, or on Ctrl-C, the running jobs are asked to stop and get
    time to save; the others never start. `on_progress` is called with the progress of each job,
    under the job's name.
    """
    waiting, room = list(jobs), Room(n_jobs, most_tries)
    running: dict[Connection, _Child] = {}
    try:
        while waiting or running:
            names = [child.job.name for child in running.values()]
            for job in take_ready(waiting, names, room.n_jobs) if room.is_open else []:
                child = _Child(job, n_threads, on_progress)
                running[child.messages] = child
            if not running:
                time.sleep(TICK)
                continue
            limits = [child.seconds_left for child in running.values()]
            seconds = min([TICK, *(each for each in limits if each is not None)])
            n_beside = len(running) - 1  # of each job that has ended meanwhile
            for messages in wait(list(running), seconds):
                assert isinstance(messages, Connection)
                ended = running[messages].read()
                if ended is None:
                    continue
                del running[messages]
                if reason := room.find_reason_to_repeat(ended, n_beside):
                    waiting.insert(0, ended.job)
                    on_progress(Note(f"{ended.job.name} will run again: {reason}", is_warning=True))
                else:
                    yield ended
            for child in list(running.values()):
                if child.seconds_left == 0:
                    del running[child.messages]
                    yield child.kill_over_budget()
    finally:
        if running:
            on_progress(
                Note("Stopping: the running jobs save their state. Ctrl-C again ends them at once.")
            )
            _stop(list(running.values()))


class Room:
    """How many jobs run at a time: fewer where they fill the GPU, and one more after each success.

    Where other programs fill it, a job that is alone is run again after a pause.
    """

    def __init__(self, n_jobs: int, most_tries: int) -> None:
        self.n_jobs = self._most = n_jobs
        self._most_tries = most_tries
        self._n_tries: Counter[str] = Counter()  # of jobs that were alone
        self._not_before = 0.0

    @property
    def is_open(self) -> bool:
        """Whether jobs may start now."""
        return time.monotonic() >= self._not_before

    def find_reason_to_repeat(self, ended: Ended, n_beside: int) -> str:
        """Say why a job is to be run again; "" for one that is not."""
        kind = None if ended.failure is None else ended.failure.kind
        if kind is None:
            self.n_jobs = min(self.n_jobs + 1, self._most)
        if kind not in (FULL_GPU, CROWDED_GPU):
            return ""
        if n_beside:
            self.n_jobs = n_beside
            return f"the GPU's memory is full: at most {n_beside} at a time for now."
        self._n_tries[ended.job.name] += 1
        if kind == FULL_GPU or self._n_tries[ended.job.name] >= self._most_tries:
            return ""
        self.n_jobs, self._not_before = 1, time.monotonic() + CROWDED_SECONDS
        return f"other programs fill the GPU's memory. Next try in {CROWDED_SECONDS:.0f} seconds."


def take_ready(waiting: list[Job], running: Collection[str], most_running: int | None) -> list[Job]:
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
    taken = ready if most_running is None else ready[: max(most_running - len(running), 0)]
    for job in taken:
        waiting.remove(job)
    return taken


class _Child:
    """The process of one job, seen from its parent."""

    def __init__(self, job: Job, n_threads: int, on_progress: OnProgress) -> None:
        self.job, self._on_progress = job, on_progress
        job.log.parent.mkdir(parents=True, exist_ok=True)
        self._start = time.monotonic()
        self.process, self.messages = start_child(_work, job, n_threads=n_threads)
        self._report(Progress("", 0.0, 1.0, unit="", detail="starting"))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the job's limit; None if it has no limit."""
        limit = self.job.limit_seconds
        return None if limit is None else max(0.0, limit - self.seconds)

    def read(self) -> Ended | None:
        """Read one message; return the end of the job, or None if the job continues."""
        try:
            kind, content = self.messages.recv()
        except Exception:  # noqa: BLE001 (a dying process may send anything, or nothing)
            end_child(self.process, LEAVING_SECONDS)
            return self._end(failure=describe_death(self.process.exitcode))
        if kind == "progress":
            self._report(content)
            return None
        end_child(self.process, LEAVING_SECONDS)
        return self._end(**{kind: content})

    def kill_over_budget(self) -> Ended:
        end_child(self.process, 0)
        minutes = self.seconds / 60
        message = f"killed after {minutes:.1f} minutes, far over its budget. Raise --budget."
        return self._end(failure=Failure(OVER_BUDGET, message))

    def _report(self, event: Progress) -> None:
        self._on_progress(replace(event, activity=self.job.name, part_of=self.job.part_of))

    def _end(self, value: object = None, failure: Failure | None = None) -> Ended:
        self.messages.close()
        log = self.job.log
        if failure is None or (log.exists() and not log.stat().st_size):
            log.unlink(missing_ok=True)
        return Ended(self.job, self.seconds, value, failure)


def _stop(children: Sequence[_Child]) -> None:
    """Ask processes to stop and give them time to save; a second Ctrl-C kills them."""
    try:
        for child in children:
            child.process.terminate()
        deadline = time.monotonic() + STOPPING_SECONDS
        for child in children:
            child.process.join(max(0.0, deadline - time.monotonic()))
    finally:
        for child in children:
            end_child(child.process, 0)
            child.messages.close()
            child.job.log.unlink(missing_ok=True)


def start_child(
    work: Callable[..., None], *arguments: object, n_threads: int = 1
) -> tuple[SpawnProcess, Connection]:
    """Start a process that does `work(*arguments, messages)`; return it and our end of the pipe.

    It does not hear Ctrl-C: its parent asks it to stop.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(*arguments, theirs), daemon=True)
    with threads_in_children(n_threads), ignored_interrupts():
        process.start()
    theirs.close()
    return process, ours


def end_child(process: SpawnProcess, seconds: float) -> None:
    """Wait until a process has ended; kill it if it does not."""
    process.join(max(0.0, seconds))
    process.kill()
    process.join()


def describe_death(exit_code: int | None) -> Failure:
    """Return the failure of a process that ended without a message."""
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name
        why = ", usually out of memory. Try fewer jobs." if name == "SIGKILL" else "."
        return Failure(name, f"killed by {name}{why}")
    return Failure("ended", f"its process ended with exit code {exit_code} and without a result.")


def describe_error(error: Exception) -> Failure:
    """Return the failure of a job that raised: one line, with the class unless it is our own."""
    if any(words in str(error) for words in FULL_GPU_WORDS):
        own = str(error) if isinstance(error, SetRNNError) else "The GPU's memory is too small."
        if _others_hold_memory():
            own = f"{own} Other processes hold a part of it."
            return Failure(CROWDED_GPU, f"{own} Try fewer jobs at a time.")
        return Failure(FULL_GPU, f"{own} Try fewer jobs at a time.")
    message = find_memory_problem(error) or " ".join(str(error).split())[:300]
    if not isinstance(error, SetRNNError):
        message = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return Failure(type(error).__name__, message)


def _others_hold_memory() -> bool:
    """Return whether other processes hold more than a tenth of the GPU's memory."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return False
    try:
        n_free, n_bytes = torch.cuda.mem_get_info()
    except RuntimeError:  # there is not even room for what a process needs to ask
        return True
    n_others = n_bytes - n_free - torch.cuda.memory_reserved()
    return bool(n_others > max(n_bytes // 10, CONTEXT_BYTES))


def _work(job: Job, messages: Connection) -> None:
    """Do the job in this process, and send its result to the parent."""
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=stop_with_parent, daemon=True).start()
    with job.log.open("w", encoding="utf-8") as log:
        for stream in (1, 2):  # the output of libraries does not belong on the screen
            os.dup2(log.fileno(), stream)
    try:
        value = job.work(_Messenger(messages))
    except KeyboardInterrupt:
        return
    except Exception as error:  # noqa: BLE001 (any error is the failure of this job alone)
        traceback.print_exc(file=sys.stderr)
        sys.stderr.flush()
        messages.send(("failure", describe_error(error)))
    else:
        messages.send(("value", value))


class _Messenger:
    """Send progress to the parent, at most every LEAST_PAUSE seconds unless the words change."""

    def __init__(self, messages: Connection) -> None:
        self._messages = messages
        self._words, self._time = ("", ""), 0.0

    def __call__(self, event: Progress | Note) -> None:
        if isinstance(event, Note):
            return
        now, words = time.monotonic(), (event.activity, event.detail)
        if words != self._words or now - self._time >= LEAST_PAUSE:
            self._words, self._time = words, now
            self._messages.send(("progress", event))


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def stop_with_parent() -> None:
    """Stop this process when its parent is killed: nobody waits for the result."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def threads_in_children(n_threads: int) -> Iterator[None]:
    """Limit the threads of processes started inside; variables that the user has set stay."""
    added = [name for name in THREAD_VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(added, str(n_threads)))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextmanager
def ignored_interrupts() -> Iterator[None]:
    """Let processes started inside ignore Ctrl-C: their parent asks them, once, to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        with suppress(TypeError):  # the handler was not set by Python
            signal.signal(signal.SIGINT, before)
