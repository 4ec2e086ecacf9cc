"""Workers that are processes of this machine, with one thread each on a CPU."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Generic

from setrnn.errors import SetRNNError
from setrnn.scale.workers import (
    Outcome,
    ResultT,
    Station,
    TaskT,
    Work,
    count_lacks,
    describe_failure,
    is_death,
)
from setrnn.training.pool import Child, describe_death

LEAVING_SECONDS = 10.0
MOST_STILLBORN = 8
LEAST_PAUSE = 0.5  # seconds between two messages of progress


class Processes(Generic[TaskT, ResultT]):
    """Processes that each hold a worker."""

    def __init__(self, work: Work[TaskT, ResultT], n_workers: int, n_gpus: int = 0) -> None:
        self.n_workers, self._work, self._n_gpus = n_workers, work, n_gpus
        self._n_stillborn = 0  # that died before they were ready, one after the other
        self._children = [self._start(place) for place in range(n_workers)]

    def has_room(self) -> bool:
        """Return whether a worker is ready and has nothing to do."""
        return any(child.is_free for child in self._children)

    def submit(self, task: TaskT) -> None:
        """Give a task to a worker that has nothing to do."""
        child = next(each for each in self._children if each.is_free)
        child.task, child.n_documents = task, 0
        with suppress(OSError):  # it has just died: the next wait finds out
            child.messages.send(task)

    def wait(self, seconds: float) -> list[Outcome[TaskT, ResultT]]:
        """Wait until tasks have ended, but not longer; replace workers that died."""
        outcomes = []
        for messages in wait([child.messages for child in self._children], seconds):
            place = next(n for n, each in enumerate(self._children) if each.messages is messages)
            child = self._children[place]
            outcome = child.read()
            if outcome is not None:
                count_lacks(outcome, child, self._children)
                outcomes.append(outcome)
            if child.is_dead:
                self._n_stillborn = 0 if child.was_ready else self._n_stillborn + 1
                if self._n_stillborn > MOST_STILLBORN:
                    raise SetRNNError(f"No worker can be started: {child.death}")
                self._children[place] = self._start(place)
        return outcomes

    def n_ready(self) -> int:
        """Return how many workers have started and take tasks."""
        return sum(each.is_free or each.task is not None for each in self._children)

    def n_documents(self) -> int:
        """Return how many documents of unfinished tasks are done."""
        return sum(child.n_documents for child in self._children)

    def cancel(self, task: TaskT) -> None:
        """Kill the worker of a task; it is replaced."""
        for child in self._children:
            if child.task == task:
                child.process.kill()

    def close(self) -> None:
        """End all workers."""
        for child in self._children:
            with suppress(OSError):
                child.messages.send(None)
        deadline = time.monotonic() + LEAVING_SECONDS
        for child in self._children:
            child.child.end(0 if child.task else deadline - time.monotonic())

    def _start(self, place: int) -> _Child[TaskT, ResultT]:
        return _Child(self._work, str(place % self._n_gpus) if self._n_gpus else None)


class _Child(Station[TaskT], Generic[TaskT, ResultT]):
    """A process, seen from the driver."""

    def __init__(self, work: Work[TaskT, ResultT], gpu: str | None) -> None:
        super().__init__()
        self.child = Child(_serve, work, gpu)
        self.process, self.messages = self.child.process, self.child.messages
        self.was_ready = self.is_dead = False
        self.death = ""

    def read(self) -> Outcome[TaskT, ResultT] | None:
        """Read one message; return how the task has ended, if it has."""
        try:
            kind, content = self.messages.recv()
        except Exception:  # noqa: BLE001 (a dying process may send anything, or nothing)
            return self._bury()
        if kind == "documents":
            self.n_documents = content
            return None
        if kind == "ready":
            self.is_ready = self.was_ready = True
            return None
        if kind == "broken":
            raise content.error()
        task, self.task, self.n_documents = self.task, None, 0
        assert task is not None
        return Outcome(task, **{kind: content})

    def _bury(self) -> Outcome[TaskT, ResultT] | None:
        self.child.end(LEAVING_SECONDS)
        self.messages.close()
        self.is_ready, self.is_dead, self.n_documents = False, True, 0
        self.death = describe_death(self.process.exitcode).message
        return None if self.task is None else Outcome(self.task, death=self.death)


def _serve(work: Work[TaskT, ResultT], gpu: str | None, messages: Connection) -> None:
    """Do tasks until there are no more; the function of a process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    try:
        worker = work.start()
    except Exception as error:  # noqa: BLE001 (any error ends all work)
        messages.send(("broken", describe_failure(error)))
        return
    messages.send(("ready", None))
    while (task := messages.recv()) is not None:
        try:
            content: tuple[str, object] = "result", worker(task, _sender(messages))
        except Exception as error:  # noqa: BLE001 (the worker lives on)
            if is_death(error):
                os._exit(1)
            content = "failure", describe_failure(error)
        messages.send(content)


def _sender(messages: Connection) -> Callable[[int], None]:
    """Return a function that counts documents and sends their number now and then."""
    n_done, sent = 0, time.monotonic()

    def add(n: int) -> None:
        nonlocal n_done, sent
        n_done += n
        now = time.monotonic()
        if now - sent >= LEAST_PAUSE:
            sent = now
            messages.send(("documents", n_done))

    return add
