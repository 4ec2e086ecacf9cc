"""Workers in other processes: how they are started, and how a driver speaks with them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeAlias, TypeVar

import setrnn
from setrnn import errors
from setrnn.errors import BadRowError, ConfigError, DataError, SetRNNError, find_memory_problem
from setrnn.training import pool

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")
CoT = TypeVar("CoT", covariant=True)
ContraT = TypeVar("ContraT", contravariant=True)
OnDocuments: TypeAlias = Callable[[int], None]
MOST_LACKS = 3  # tasks in a row for which a worker lacks a disk or the network


class Worker(Protocol[ContraT, CoT]):
    """Does one task after the other."""

    def __call__(self, task: ContraT, on_documents: OnDocuments) -> CoT:
        """Do a task; report documents that are done."""


class Work(Protocol[ContraT, CoT]):
    """What is sent to every worker."""

    def start(self) -> Worker[ContraT, CoT]:
        """Make a worker, in its own process."""


@dataclass(frozen=True)
class Failure(pool.Failure):
    """An error that a worker has met; the worker lives on."""

    is_lack: bool = False  # of disk or of the network: another worker may succeed

    def error(self) -> SetRNNError:
        """Return the error, for the driver to raise."""
        found = getattr(errors, self.kind, None)
        if not isinstance(found, type) or not issubclass(found, SetRNNError):
            return SetRNNError(self.message)
        # The message of a bad row names the row already.
        return DataError(self.message) if found is BadRowError else found(self.message)


@dataclass(frozen=True)
class Outcome(Generic[TaskT, ResultT]):
    """How a task has ended: with a result, a failure, or its worker's death."""

    task: TaskT
    result: ResultT | None = None
    failure: Failure | None = None
    death: str = ""  # why the worker died


class Station(Generic[TaskT]):
    """One worker, seen from the driver."""

    def __init__(self) -> None:
        self.task: TaskT | None = None
        self.n_documents = 0  # of the task that are done
        self.is_ready = False
        self.n_lacks = 0  # failures in a row for want of a disk or the network

    @property
    def is_free(self) -> bool:
        """Whether a task can be given to the worker."""
        return self.is_ready and self.task is None and self.n_lacks < MOST_LACKS


def count_lacks(
    outcome: Outcome[TaskT, ResultT], worker: Station[TaskT], workers: Sequence[Station[TaskT]]
) -> None:
    """Count the tasks in a row that a worker could not read or write; after some, it gets no more.

    So one machine with a full disk does not stop the others. If all workers are in this state, the
    failure is raised.
    """
    failure = outcome.failure
    worker.n_lacks = worker.n_lacks + 1 if failure is not None and failure.is_lack else 0
    if failure is not None and all(each.n_lacks >= MOST_LACKS for each in workers):
        raise failure.error()


class Workers(Protocol[TaskT, ResultT]):
    """Several workers; each has one task at a time."""

    n_workers: int

    def has_room(self) -> bool:
        """Return whether a worker is ready and has nothing to do."""

    def submit(self, task: TaskT) -> None:
        """Give a task to a worker that has nothing to do."""

    def wait(self, seconds: float) -> list[Outcome[TaskT, ResultT]]:
        """Wait until tasks have ended, but not longer; workers that died are replaced."""

    def n_ready(self) -> int:
        """Return how many workers have started and take tasks."""

    def n_documents(self) -> int:
        """Return how many documents of unfinished tasks are done."""

    def cancel(self, task: TaskT) -> None:
        """Kill the worker of a task; it is replaced."""

    def close(self) -> None:
        """End all workers."""


def check_version(version: str) -> None:
    """Raise ConfigError if a worker has another version of setrnn than its driver."""
    if setrnn.__version__ != version:
        raise ConfigError(
            f"A worker on {platform.node()} has setrnn {setrnn.__version__} instead of {version}. "
            "Install the same version everywhere."
        )


def check_seen(paths: Iterable[Path]) -> None:
    """Raise ConfigError if this machine does not see a file or folder that the driver sees."""
    for path in paths:
        if path.is_absolute() and not path.exists():
            raise ConfigError(
                f"A worker on {platform.node()} does not see {path}. Model, data and --out must be "
                "on a disk that all machines share, at the same path."
            )


def describe_failure(error: Exception) -> Failure:
    """Return an error as a worker sends it: one line."""
    found = pool.describe_error(error)
    is_lack = isinstance(error, OSError) or isinstance(error.__cause__, OSError)
    return Failure(found.kind, found.message, is_lack)


def is_death(error: BaseException) -> bool:
    """Return whether an error leaves a worker in doubt: it has no memory left."""
    return isinstance(error, MemoryError) or bool(
        isinstance(error, Exception) and find_memory_problem(error)
    )
