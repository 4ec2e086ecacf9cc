"""Workers that are actors of a Ray cluster: only tasks and small results pass through Ray."""

from __future__ import annotations

import logging
import os
import platform
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Generic

from setrnn.errors import ConfigError
from setrnn.scale.workers import (
    Failure,
    Outcome,
    ResultT,
    Station,
    TaskT,
    Work,
    Worker,
    count_lacks,
    describe_failure,
    is_death,
)
from setrnn.training.pool import THREAD_VARIABLES

SECONDS_TO_ANSWER = 5.0
LOOK_SECONDS = 2.0  # between two questions for the progress
MOST_STILLBORN = 8
PATIENCE_SECONDS = 300.0  # without any worker that is ready
NEEDS_RAY = "--ray needs Ray: pip install 'setrnn[ray]'"


def connect(address: str) -> None:
    """Connect to a cluster, by its address; "auto" finds that of this machine, "local" starts one.

    Raises ConfigError if there is none.
    """
    try:
        import ray
    except ImportError:
        raise ConfigError(NEEDS_RAY) from None
    if ray.is_initialized():
        return
    is_answered = _check_address(address)
    try:
        ray.init(
            address=None if address == "local" else address,
            include_dashboard=False if address == "local" else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        if _is_about_a_token(error):
            raise ConfigError(
                f"The Ray cluster at '{address}' asks for its token. Set RAY_AUTH_MODE=token, and "
                "the token in RAY_AUTH_TOKEN or in ~/.ray/auth_token."
            ) from error
        if is_answered:
            raise ConfigError(
                f"'{address}' answers, but does not accept this machine. Check that it is a Ray "
                "cluster, and its version."
            ) from error
        raise _no_cluster(address) from error


def _check_address(address: str) -> bool:
    """Return whether somebody listens at an address; False if it is a word, such as auto.

    Raises ConfigError if nobody does: Ray itself would wait for minutes.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return False
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address) from error
    return True


def _is_about_a_token(error: BaseException | None) -> bool:
    """Return whether Ray has refused the token of this machine, or found none."""
    while error is not None:
        if "InvalidAuthToken" in str(error) or type(error).__name__ == "AuthenticationError":
            return True
        error = error.__cause__ or error.__context__
    return False


def _no_cluster(address: str) -> ConfigError:
    return ConfigError(
        f"No Ray cluster answers at '{address}'. Start one with ray start --head, or check the "
        "address."
    )


def count_room(gpus_each: float) -> int:
    """Return how many workers the connected cluster has room for; ConfigError if none."""
    import ray

    resources = ray.cluster_resources()
    n = int(resources.get("CPU", 0))
    if gpus_each:
        n = min(n, int(resources.get("GPU", 0) / gpus_each))
    if not n:
        lacking = f"{gpus_each:g} GPUs" if gpus_each else "a CPU"
        raise ConfigError(
            f"The Ray cluster has no room for a worker with {lacking}. See: ray status"
        )
    return n


def start_actor(made: type, gpus: float, n_calls: int, *arguments: object) -> Any:  # noqa: ANN401 (Ray has no types)
    """Ask for an actor with one CPU, which answers some calls at once; nobody starts it again."""
    import ray

    options: dict[str, Any] = {
        "num_cpus": 1,
        "num_gpus": gpus,
        "max_restarts": 0,
        "max_concurrency": n_calls,
    }
    return ray.remote(made).options(**options).remote(*arguments)


def end_actor(actor: object) -> None:
    """End an actor, dead or alive."""
    import ray

    with suppress(ray.exceptions.RayError):
        ray.kill(actor)


def explain_loss(error: Exception) -> str:
    """Return why an actor was lost; raise ConfigError if its node has no setrnn."""
    if "No module named 'setrnn'" in str(error):
        raise ConfigError(
            "A node of the Ray cluster has no setrnn. Install the same version everywhere."
        ) from error
    first = str(error).strip().splitlines()
    return " ".join(first[0].split())[:200] if first else type(error).__name__


class RayWorkers(Generic[TaskT, ResultT]):
    """Actors that each hold a worker."""

    def __init__(
        self,
        work: Work[TaskT, ResultT],
        n_workers: int | None,
        n_most: int,
        gpus_per_worker: float = 0.0,
    ) -> None:
        """Start at most `n_most` workers: those wanted, or as many as the cluster has room for."""
        import ray

        self._ray: Any = ray
        self._work, self._gpus = work, gpus_per_worker
        self.n_workers = min(n_workers or count_room(gpus_per_worker), n_most)
        self._actors = [self._start() for _ in range(self.n_workers)]
        self._n_stillborn = 0  # that died before they were ready, one after the other
        self._looked = self._alive = time.monotonic()

    def has_room(self) -> bool:
        """Return whether a worker is ready and has nothing to do."""
        return any(each.is_free for each in self._actors)

    def submit(self, task: TaskT) -> None:
        """Give a task to a worker that has nothing to do."""
        actor = next(each for each in self._actors if each.is_free)
        actor.task, actor.n_documents = task, 0
        actor.answer = actor.handle.do.remote(task)

    def wait(self, seconds: float) -> list[Outcome[TaskT, ResultT]]:
        """Wait until tasks have ended, but not longer; replace workers that died."""
        answers = {each.answer: each for each in self._actors if each.answer is not None}
        if not answers:
            return []
        ready, _ = self._ray.wait(list(answers), num_returns=1, timeout=seconds)
        if ready:  # and others that are ready by now
            ready, _ = self._ray.wait(list(answers), num_returns=len(answers), timeout=0)
        outcomes = [self._read(answers[each]) for each in ready]
        self._check_alive()
        return [each for each in outcomes if each is not None]

    def n_ready(self) -> int:
        """Return how many workers have started and take tasks."""
        return sum(each.is_free or each.task is not None for each in self._actors)

    def n_documents(self) -> int:
        """Return how many documents of unfinished tasks are done."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            asked = {each.handle.n_documents.remote(): each for each in self._actors if each.task}
            ready, _ = (
                self._ray.wait(list(asked), num_returns=len(asked), timeout=1) if asked else ([], 0)
            )
            for each in ready:
                with suppress(self._ray.exceptions.RayError):
                    asked[each].n_documents = self._ray.get(each)
        return sum(each.n_documents for each in self._actors)

    def cancel(self, task: TaskT) -> None:
        """Kill the worker of a task; it is replaced."""
        for each in self._actors:
            if each.task == task:
                self._ray.kill(each.handle)

    def close(self) -> None:
        """End all workers."""
        for each in self._actors:
            end_actor(each.handle)

    def _start(self) -> _Handle[TaskT]:
        handle = start_actor(_Actor, self._gpus, 2, self._work)  # a task, and its progress
        return _Handle(handle, handle.start.remote())

    def _read(self, actor: _Handle[TaskT]) -> Outcome[TaskT, ResultT] | None:
        """Read what an actor has answered; replace it if it is dead."""
        task = actor.task
        try:
            content = self._ray.get(actor.answer)
        except self._ray.exceptions.RayError as error:
            why = explain_loss(error)
            self._replace(actor, why)
            return None if task is None else Outcome(task, death=why)
        actor.answer, actor.task, actor.n_documents = None, None, 0
        if task is None:
            if content is not None:
                raise content.error()
            actor.is_ready, self._n_stillborn = True, 0
            return None
        is_failure = isinstance(content, Failure)
        outcome = Outcome(task, failure=content) if is_failure else Outcome(task, content)
        count_lacks(outcome, actor, self._actors)
        return outcome

    def _replace(self, actor: _Handle[TaskT], why: str) -> None:
        """Start another actor; pause before that if this one has never been ready."""
        end_actor(actor.handle)
        if not actor.is_ready:
            self._n_stillborn += 1
            if self._n_stillborn > MOST_STILLBORN:
                raise ConfigError(f"No worker can be started on the Ray cluster: {why}")
            time.sleep(self._n_stillborn)
        self._actors[self._actors.index(actor)] = self._start()

    def _check_alive(self) -> None:
        now = time.monotonic()
        if any(each.is_ready for each in self._actors):
            self._alive = now
        elif now - self._alive > PATIENCE_SECONDS:
            raise ConfigError(
                f"No worker could be started on the Ray cluster for {PATIENCE_SECONDS:.0f} s. Look "
                "at it with: ray status"
            )


class _Handle(Station[TaskT]):
    """An actor, seen from the driver."""

    def __init__(self, handle: Any, answer: Any) -> None:  # noqa: ANN401 (Ray has no types)
        super().__init__()
        self.handle, self.answer = handle, answer


class _Actor:
    """A worker in a process of the cluster."""

    def __init__(self, work: Work[Any, Any]) -> None:
        self._work, self._n_documents = work, 0
        self._worker: Worker[Any, Any] | None = None

    def start(self) -> Failure | None:
        """Make the worker; return what went wrong."""
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
        try:
            self._worker = self._work.start()
        except Exception as error:  # noqa: BLE001 (any error ends all work)
            return describe_failure(error)
        return None

    def do(self, task: object) -> object:
        """Do a task."""
        self._n_documents = 0
        assert self._worker is not None
        try:
            return self._worker(task, self._count)
        except Exception as error:  # noqa: BLE001 (the worker lives on)
            if is_death(error):
                os._exit(1)
            found = describe_failure(error)
            where = f"{platform.node()}: " if found.is_lack else ""
            return replace(found, message=where + found.message)

    def n_documents(self) -> int:
        """Return how many documents of the task are done."""
        return self._n_documents

    def _count(self, n: int) -> None:
        self._n_documents += n
