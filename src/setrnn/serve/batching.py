"""Requests gathered into batches, which the threads of a model work on."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from time import monotonic
from typing import Any, Protocol

LEAST_SHARE = 16  # documents that are not split among threads: small batches cost more each
MOST_RETRY_SECONDS = 30
SMOOTHING = 0.2  # of the speed that is measured, a batch


class Work(Hashable, Protocol):
    """What is to be done with documents; equal works share a batch."""

    def run(self, documents: Sequence[Any]) -> Sequence[Any]:
        """Return one result a document, in order."""


class QueueFullError(Exception):
    """Too much is waiting."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after  # seconds


@dataclass(eq=False)
class _Job:
    """One request: its documents, and where their results go."""

    work: Work
    documents: Sequence[Any]
    results: asyncio.Future[Sequence[Any]]
    arrived: float = field(default_factory=monotonic)


Outcome = Sequence[Any] | Exception


class Batcher:
    """A queue of requests, and the threads that work it off batch by batch.

    Args:
        max_batch: documents a batch; a larger request is a batch of its own.
        max_waiting: documents that may wait.
        wait_seconds: how long the first request of a batch waits for others.
        n_workers: batches under way at once, each in a thread of its own.
        on_batch: told the documents of each batch that ends.
    """

    def __init__(
        self,
        max_batch: int,
        max_waiting: int,
        wait_seconds: float,
        n_workers: int = 1,
        on_batch: Callable[[int], None] = lambda n_documents: None,
    ) -> None:
        self.max_batch, self.max_waiting = max_batch, max_waiting
        self.wait_seconds, self.n_workers, self.on_batch = wait_seconds, n_workers, on_batch
        self.n_waiting = 0  # documents
        self._waiting: deque[_Job] = deque()
        self._speed = 0.0  # documents/s of one worker
        self._n_idle = 0  # workers
        self._changed = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []

    def submit(self, work: Work, documents: Sequence[Any]) -> asyncio.Future[Sequence[Any]]:
        """Queue documents and return the future of their results; cancelled, it is dropped.

        Raises QueueFullError if too much is waiting. What has begun is finished.
        """
        loop = asyncio.get_running_loop()
        if self._waiting and self.n_waiting + len(documents) > self.max_waiting:
            raise QueueFullError(self._retry_after())
        job = _Job(work, documents, loop.create_future())
        job.results.add_done_callback(lambda results: self._forget(job))
        self._waiting.append(job)
        self.n_waiting += len(documents)
        self._changed.set()
        if not self._workers:
            self._changed, self._n_idle = asyncio.Event(), self.n_workers
            self._workers = [loop.create_task(self._work()) for _ in range(self.n_workers)]
        return job.results

    async def close(self) -> None:
        """Stop; batches under way are finished first, and what waits is dropped."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        """Work off the queue with a thread of its own, until it is closed."""
        loop = asyncio.get_running_loop()
        jobs: list[_Job] = []
        try:
            with ThreadPoolExecutor(1, "setrnn-batch") as thread:
                while True:
                    await self._gather()
                    jobs, start = self._take(), monotonic()
                    self._n_idle -= 1
                    outcomes = await loop.run_in_executor(thread, _outcomes, jobs)
                    self._n_idle += 1
                    self._count(sum(len(job.documents) for job in jobs), monotonic() - start)
                    _deliver(jobs, outcomes)
        finally:
            for job in (*jobs, *self._waiting):
                job.results.cancel()

    async def _gather(self) -> None:
        """Wait for a request; then, for a moment, for others."""
        while True:
            while not self._waiting:
                self._changed.clear()
                await self._changed.wait()
            left = self._waiting[0].arrived + self.wait_seconds - monotonic()
            if left <= 0 or self.n_waiting >= self.max_batch:
                return
            self._changed.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)

    def _take(self) -> list[_Job]:
        """Take the oldest request and those like it, as far as a batch or an even share goes."""
        taken: list[_Job] = []
        kept: deque[_Job] = deque()
        n_documents = 0
        share = max(math.ceil(self.n_waiting / self._n_idle), LEAST_SHARE)
        most = min(share, self.max_batch)
        for job in self._waiting:
            fits = not taken or n_documents + len(job.documents) <= most
            if fits and (not taken or job.work == taken[0].work):
                taken.append(job)
                n_documents += len(job.documents)
            else:
                kept.append(job)
        self._waiting = kept
        self.n_waiting -= n_documents
        return taken

    def _forget(self, job: _Job) -> None:
        """Drop a request that was given up from the queue, where it still is."""
        if job.results.cancelled() and job in self._waiting:
            self._waiting.remove(job)
            self.n_waiting -= len(job.documents)

    def _count(self, n_documents: int, seconds: float) -> None:
        if n_documents:
            speed = n_documents / max(seconds, 1e-6)
            self._speed += (SMOOTHING if self._speed else 1.0) * (speed - self._speed)
            self.on_batch(n_documents)

    def _retry_after(self) -> int:
        """Guess when half of what waits will be done."""
        if not self._speed:
            return 1
        seconds = self.n_waiting / 2 / (self._speed * self.n_workers)
        return min(max(math.ceil(seconds), 1), MOST_RETRY_SECONDS)


def _deliver(jobs: Sequence[_Job], outcomes: Sequence[Outcome]) -> None:
    """Hand each request its results, or what went wrong with it."""
    for job, outcome in zip(jobs, outcomes, strict=True):
        if job.results.done():  # the client has gone
            continue
        if isinstance(outcome, Exception):
            job.results.set_exception(outcome)
        else:
            job.results.set_result(outcome)


def _outcomes(jobs: Sequence[_Job]) -> list[Outcome]:
    """Work on requests together; if that fails, on each by itself, so that only one fails."""
    if not jobs:
        return []
    try:
        results = jobs[0].work.run([each for job in jobs for each in job.documents])
    except Exception as error:  # noqa: BLE001 (whatever it is, the request gets it)
        if len(jobs) == 1:
            return [error]
        return [outcome for job in jobs for outcome in _outcomes([job])]
    ends = [0]
    for job in jobs:
        ends.append(ends[-1] + len(job.documents))
    return [results[start:stop] for start, stop in pairwise(ends)]
