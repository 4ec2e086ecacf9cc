"""Jobs on a Ray cluster: the pool of processes, one per job, on whatever node has room.

Each job has an actor, and the actor runs it as the pool does, in a new process. So a job that
crashes fails as it does on one machine; only if its worker or its node is lost, it is given to
another one, where it resumes from what it has saved. All nodes must see the same folders.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import setrnn
from setrnn.errors import ConfigError
from setrnn.progress import Note, OnProgress, Progress, ignore_progress
from setrnn.scale.ray_workers import end_actor, explain_loss, start_actor
from setrnn.scale.workers import check_seen, check_version
from setrnn.training.pool import (
    STOPPING_SECONDS,
    TICK,
    Ended,
    Failure,
    Job,
    run_jobs,
    take_ready,
)

MOST_LOSSES = 5  # of the workers of one job
WAITING_SECONDS = 60.0  # without a running job, after which the user is told


def run_jobs_on_ray(
    jobs: Sequence[Job],
    n_jobs: int | None = None,
    on_progress: OnProgress = ignore_progress,
    gpus_per_job: float = 0.0,
) -> Generator[Ended, None, None]:
    """Run jobs on the connected cluster, and yield each at its end; like `run_jobs`.

    Args:
        jobs: what to run, each on one core.
        n_jobs: how many at a time; None: as many as there is room for.
        on_progress: called with the progress of each job, under the job's name.
        gpus_per_job: the GPUs of each job, such as 0.25.
    """
    waiting = list(jobs)
    running: list[_Remote] = []
    clock = time.monotonic()
    try:
        while waiting or running:
            ready = take_ready(waiting, [each.job.name for each in running], n_jobs)
            running += [_Remote(job, gpus_per_job, on_progress) for job in ready]
            _wait(running)
            for each in list(running):
                ended = each.read()
                if ended is not None:
                    running.remove(each)
                    end_actor(each.actor)
                    yield ended
            if any(each.is_started for each in running):
                clock = float("inf")
            elif time.monotonic() - clock > WAITING_SECONDS:
                clock = float("inf")
                on_progress(Note("Waiting for room on the Ray cluster. See: ray status"))
    finally:
        if running:
            on_progress(Note("Stopping: the running jobs save their state."))
            _stop(running)


class _Remote:
    """One job, seen from the driver: its actor, and how often one was lost."""

    def __init__(self, job: Job, gpus: float, on_progress: OnProgress) -> None:
        import ray

        self.job, self._gpus, self._on_progress = job, gpus, on_progress
        self._ray: Any = ray
        self._n_losses = 0
        job.log.parent.mkdir(parents=True, exist_ok=True)  # a worker must see it
        self._start()

    def _start(self) -> None:
        """Ask for a worker: it starts as soon as a node has room."""
        self.actor = start_actor(_Actor, self._gpus, 3)  # the job, its progress, and the stop
        self.answer = self.actor.do.remote(self.job, setrnn.__version__)
        self.question = self.actor.progress.remote()
        self._asked, self.is_started = time.monotonic(), False

    def read(self) -> Ended | None:
        """Report the progress; return the end of the job, or None if the job continues."""
        if self._is_ready(self.answer):
            return self._read_answer()
        if self._is_ready(self.question) and time.monotonic() - self._asked >= TICK:
            with suppress(self._ray.exceptions.RayError):  # the answer will say so
                event = self._ray.get(self.question)
                self.is_started = True
                if event is not None:
                    self._on_progress(event)
            self._asked, self.question = time.monotonic(), self.actor.progress.remote()
        return None

    def _is_ready(self, reference: object) -> bool:
        return bool(self._ray.wait([reference], timeout=0)[0])

    def _read_answer(self) -> Ended | None:
        try:
            answer: Ended | Failure = self._ray.get(self.answer)
        except self._ray.exceptions.RayError as error:
            explain_loss(error)
            return self._lose()
        if isinstance(answer, Failure):
            raise ConfigError(answer.message)
        return replace(answer, job=self.job)

    def _lose(self) -> Ended | None:
        """Give the job to another worker, or give it up."""
        end_actor(self.actor)
        self._n_losses += 1
        if self._n_losses >= MOST_LOSSES:
            message = f"its worker or node was lost {self._n_losses} times. Is there enough memory?"
            return Ended(self.job, 0.0, failure=Failure("lost", message))
        self._on_progress(
            Note(f"{self.job.name}: its worker or node was lost. It resumes on another.")
        )
        self._start()
        return None


def _wait(running: Sequence[_Remote]) -> None:
    """Wait until a job has ended, but not longer than a tick."""
    if running:
        import ray

        ray.wait([each.answer for each in running], num_returns=1, timeout=TICK)


def _stop(running: Sequence[_Remote]) -> None:
    """Ask jobs to stop and give them time to save; a second Ctrl-C kills them."""
    import ray

    try:
        started = [each for each in running if each.is_started]
        for each in started:
            each.actor.stop.remote()
        if started:
            answers = [each.answer for each in started]
            ray.wait(answers, num_returns=len(answers), timeout=STOPPING_SECONDS)
    finally:
        for each in running:
            end_actor(each.actor)
            each.job.log.unlink(missing_ok=True)  # a stop is not a failure


class _Actor:
    """The worker of one job, in a process of the cluster."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def do(self, job: Job, version: str) -> Ended | Failure:
        """Run the job; return a failure if no job could run here."""
        try:
            check_version(version)
            check_seen([job.log.parent])
        except ConfigError as error:
            return Failure("worker", str(error))
        (ended,) = run_jobs([job], 1, self._keep)
        return ended

    def progress(self) -> Progress | None:
        """Return the last progress of the job."""
        return self._progress

    def stop(self) -> None:
        """Ask the job to save its state and to end."""
        for child in multiprocessing.active_children():
            child.terminate()

    def _keep(self, event: Progress | Note) -> None:
        if isinstance(event, Progress):
            self._progress = event
