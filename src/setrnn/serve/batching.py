"""Requests gathered into batches, which a model's threads process."""

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

from setrnn.model.devices import find_device, n_cores

MIN_SHARE = 16  # documents: fewer are not split among threads, as small batches are slower
MAX_RETRY_SECONDS = 30
SMOOTHING = 0.2  # weight of the last batch in the measured speed


def default_workers(device: str) -> int:
    """Return how many batches to process at once: one per core; on a GPU, one is fastest."""
    return n_cores() if find_device(device).type == "cpu" else 1


class Work(Hashable, Protocol):
    """What to do with documents; requests with equal work share a batch."""

    def run(self, documents: Sequence[Any]) -> Sequence[Any]:
        """Return one result per document, in order."""


class QueueFullError(Exception):
    """Too many documents are waiting."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after  # seconds


@dataclass(eq=False)
class _Job:
    """One request: its documents and the future of their results."""

    work: Work
    documents: Sequence[Any]
    results: asyncio.Future[Sequence[Any]]
    arrived: float = field(default_factory=monotonic)


Outcome = Sequence[Any] | Exception


class Batcher:
    """A queue of requests, and threads that process it in batches.

    Args:
        max_batch: documents per batch; a larger request is a batch of its own.
        max_waiting: documents that may wait.
        wait_seconds: how long the first request of a batch waits for others.
        n_workers: batches processed at once, each in a thread of its own.
        on_batch: called with the number of documents of each finished batch.
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
        """Queue documents and return the future of their results.

        Cancelling the future drops the request unless its batch has started. Raises QueueFullError
        if too many documents are waiting.
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
        """Finish the current batches, drop the waiting requests, and stop."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        """Process batches in one thread until the queue is closed."""
        loop = asyncio.get_running_loop()
        jobs: list[_Job] = []
        try:
            with ThreadPoolExecutor(1, "setrnn-batch") as thread:
                while True:
                    await self._gather()
                    jobs, start = self._take(), monotonic()
                    self._n_idle -= 1
                    outcomes = await loop.run_in_executor(thread, _run, jobs)
                    self._n_idle += 1
                    self._count(sum(len(job.documents) for job in jobs), monotonic() - start)
                    _deliver(jobs, outcomes)
        finally:
            for job in (*jobs, *self._waiting):
                job.results.cancel()

    async def _gather(self) -> None:
        """Wait for a request, then for `wait_seconds` for others."""
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
        """Take the oldest request and those with equal work, up to a batch or an even share."""
        taken: list[_Job] = []
        kept: deque[_Job] = deque()
        n_documents = 0
        share = max(math.ceil(self.n_waiting / self._n_idle), MIN_SHARE)
        limit = min(share, self.max_batch)
        for job in self._waiting:
            fits = not taken or n_documents + len(job.documents) <= limit
            if fits and (not taken or job.work == taken[0].work):
                taken.append(job)
                n_documents += len(job.documents)
            else:
                kept.append(job)
        self._waiting = kept
        self.n_waiting -= n_documents
        return taken

    def _forget(self, job: _Job) -> None:
        """Remove a cancelled request from the queue if it is still there."""
        if job.results.cancelled() and job in self._waiting:
            self._waiting.remove(job)
            self.n_waiting -= len(job.documents)

    def _count(self, n_documents: int, seconds: float) -> None:
        if n_documents:
            speed = n_documents / max(seconds, 1e-6)
            self._speed += (SMOOTHING if self._speed else 1.0) * (speed - self._speed)
            self.on_batch(n_documents)

    def _retry_after(self) -> int:
        """Estimate when half of the waiting documents will be done, in seconds."""
        if not self._speed:
            return 1
        seconds = self.n_waiting / 2 / (self._speed * self.n_workers)
        return min(max(math.ceil(seconds), 1), MAX_RETRY_SECONDS)


def _deliver(jobs: Sequence[_Job], outcomes: Sequence[Outcome]) -> None:
    """Give each request its results or its error."""
    for job, outcome in zip(jobs, outcomes, strict=True):
        if job.results.done():  # the client has disconnected
            continue
        if isinstance(outcome, Exception):
            job.results.set_exception(outcome)
        else:
            job.results.set_result(outcome)


def _run(jobs: Sequence[_Job]) -> list[Outcome]:
    """Process requests together; if that fails, one by one, so that only the bad one fails."""
    if not jobs:
        return []
    try:
        results = jobs[0].work.run([each for job in jobs for each in job.documents])
    except Exception as error:  # noqa: BLE001 (the request gets it, whatever it is)
        if len(jobs) == 1:
            return [error]
        return [outcome for job in jobs for outcome in _run([job])]
    ends = [0]
    for job in jobs:
        ends.append(ends[-1] + len(job.documents))
    return [results[start:stop] for start, stop in pairwise(ends)]
