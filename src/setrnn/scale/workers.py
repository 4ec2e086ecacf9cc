"""Workers in other processes: how they are started, and how a driver speaks with them."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
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


class Workers(Protocol[TaskT, ResultT]):
    """Several workers; each has one task at a time."""

    n_workers: int

    def has_room(self) -> bool:
        """Return whether a worker is ready and has nothing to do."""

    def submit(self, task: TaskT) -> None:
        """Give a task to a worker that has nothing to do."""

    def wait(self, seconds: float) -> list[Outcome[TaskT, ResultT]]:
        """Wait until tasks have ended, but not longer; workers that died are replaced."""

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
            f"A worker has setrnn {setrnn.__version__} on {platform.node()}, instead of {version}. "
            "Install the same version everywhere."
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
