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
from typing import Any

from setrnn.errors import SetRNNError
from setrnn.model.devices import find_device, n_cores
from setrnn.serve.problems import ProblemError

MIN_SHARE = 16  # documents: fewer are not split among threads, as small batches are slower
BATCH_SECONDS = 0.5  # that a batch should take at most: a larger request is cut
MAX_KINDS = 256  # of work whose cost is remembered
MAX_WAITS = 10  # for others: as long as requests arrive, a batch waits this many times
WAITED_SHARE = 0.1  # of the time of a batch, if that is longer: on busy cores all take longer


def default_workers(device: str) -> int:
    """Return how many batches to process at once: one per core; on a GPU, one is fastest."""
    return n_cores() if find_device(device).type == "cpu" else 1


@dataclass(frozen=True)
class Work:
    """What to do with documents; requests with equal work share a batch."""

    run: Callable[..., Sequence[Any]]  # takes documents and the arguments; one result per document
    arguments: tuple[Hashable, ...] = ()
    may_be_slow: bool = False  # one document may take seconds: the first is measured alone


class WorkError(Exception):
    """The work has failed; its cause may be one that a future cannot carry."""


@dataclass(eq=False)
class _Job:
    """One request: its documents, the results so far, and the future of all results."""

    work: Work
    documents: Sequence[Any]
    results: asyncio.Future[Sequence[Any]]
    found: list[Any] = field(default_factory=list)
    share: Sequence[Any] = ()  # the documents of the current batch

    @property
    def left(self) -> Sequence[Any]:
        """The documents without results."""
        return self.documents[len(self.found) :]


Outcome = Sequence[Any] | Exception


class Batcher:
    """A queue of requests, and threads that process it in batches.

    A request is cut if it has more documents than a batch, or if its kind of work is slow; other
    requests are served between its shares.

    Args:
        max_batch: documents per batch.
        max_waiting: documents that may wait.
        wait_seconds: how long a batch waits for another request, at least, up to MAX_WAITS times.
        n_workers: batches processed at once, each in a thread of its own.
        on_batch: called with the number of documents of each finished batch.
        may_come: whether another request can come; if not, a batch waits for none.
    """

    def __init__(
        self,
        max_batch: int,
        max_waiting: int,
        wait_seconds: float,
        n_workers: int = 1,
        on_batch: Callable[[int], None] = lambda n_documents: None,
        may_come: Callable[[], bool] = lambda: True,
    ) -> None:
        self.max_batch, self.max_waiting = max_batch, max_waiting
        self.wait_seconds, self.n_workers = wait_seconds, n_workers
        self.on_batch, self.may_come = on_batch, may_come
        self.n_waiting = 0  # documents
        self.n_pending = 0  # requests that are not answered
        self._seconds = 0.0  # of the last batch
        self._n_queued = 0  # requests so far
        self._waiting: deque[_Job] = deque()
        # Seconds per document by the hash of the work, which does not keep its model in memory.
        self._costs: dict[int, float] = {}
        self._n_idle = 0  # workers
        self._changed, self._complete = asyncio.Event(), asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []

    def submit(self, work: Work, documents: Sequence[Any]) -> asyncio.Future[Sequence[Any]]:
        """Queue documents and return the future of their results.

        Cancelling the future drops what has not been started. Raises a 503 if too many documents
        are waiting.
        """
        if self._waiting and self.n_waiting + len(documents) > self.max_waiting:
            raise ProblemError("queue-full", "The queue is full.")
        loop = asyncio.get_running_loop()
        job = _Job(work, documents, loop.create_future())
        job.results.add_done_callback(lambda results: self._forget(job))
        self.n_pending += 1
        if not self._workers:
            self._n_idle = self.n_workers
            self._workers = [loop.create_task(self._work()) for _ in range(self.n_workers)]
        self._queue(job)
        return job.results

    async def close(self) -> None:
        """Finish the current batches, drop the waiting requests, and stop."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for job in [*self._waiting]:
            job.results.cancel()

    async def _work(self) -> None:
        """Process batches in one thread until the queue is closed."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "setrnn-batch") as thread:
            while True:
                await self._gather()
                jobs, start = self._take(), monotonic()
                self._n_idle -= 1
                try:
                    outcomes = await loop.run_in_executor(thread, _run, jobs)
                    self._measure(jobs, monotonic() - start)
                    self._deliver(jobs, outcomes)
                except asyncio.CancelledError:
                    for job in jobs:
                        job.results.cancel()
                    raise
                finally:
                    self._n_idle += 1

    async def _gather(self) -> None:
        """Wait for a request, then for others until none arrives for a moment, or none can come.

        Clients that were just answered ask again within milliseconds: batches are larger, and a
        step of a batch costs nearly the same for few documents as for many.
        """
        while True:
            while not self._waiting:
                self._changed.clear()
                await self._changed.wait()
            await asyncio.sleep(0)  # requests that were just answered are no longer pending
            moment = self.wait_seconds  # for another request
            if moment:
                moment = max(moment, WAITED_SHARE * self._seconds)
            start = monotonic()
            end, is_quiet = start + MAX_WAITS * moment, False
            while start < end and not is_quiet and not self._is_complete():
                n_before = self._n_queued
                self._complete.clear()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._complete.wait(), moment)
                now = monotonic()
                # A late timer: the loop was busy, and there may be requests that it has not read.
                is_late = now - start > 2 * moment
                is_quiet, start = not is_late and self._n_queued == n_before, now
            if self._waiting:  # another worker may have taken all
                return

    def _is_complete(self) -> bool:
        return self.n_waiting >= self.max_batch or not self.may_come()

    def _queue(self, job: _Job) -> None:
        self._waiting.append(job)
        self._n_queued += 1
        self.n_waiting += len(job.left)
        self._changed.set()
        if self._is_complete():
            self._complete.set()

    def _take(self) -> list[_Job]:
        """Take the oldest request and those with equal work, up to a batch or an even share."""
        first = self._waiting.popleft()
        cost = self._costs.get(hash(first.work))
        if cost is None:
            most = 1 if first.work.may_be_slow else self.max_batch
        else:
            most = min(max(int(BATCH_SECONDS / cost), 1), self.max_batch)
        limit = min(max(math.ceil(self.n_waiting / self._n_idle), MIN_SHARE), most)
        first.share = first.left[:most]
        taken, kept, n_documents = [first], deque[_Job](), len(first.share)
        for job in self._waiting:
            if n_documents + len(job.left) <= limit and job.work == first.work:
                job.share = job.left
                taken.append(job)
                n_documents += len(job.share)
            else:
                kept.append(job)
        self._waiting = kept
        self.n_waiting -= sum(len(job.left) for job in taken)
        return taken

    def _deliver(self, jobs: Sequence[_Job], outcomes: Sequence[Outcome]) -> None:
        """Give each request its results or its error; a request that was cut waits again."""
        for job, outcome in zip(jobs, outcomes, strict=True):
            if job.results.done():  # the client has disconnected
                continue
            if isinstance(outcome, Exception):
                job.results.set_exception(outcome)
                continue
            job.found.extend(outcome)
            if job.left:
                self._queue(job)
            else:
                job.results.set_result(job.found)

    def _forget(self, job: _Job) -> None:
        """Remove a request that is done, from the queue too if it was cancelled or has failed."""
        self.n_pending -= 1
        if job in self._waiting:
            self._waiting.remove(job)
            self.n_waiting -= len(job.left)

    def _measure(self, jobs: Sequence[_Job], seconds: float) -> None:
        """Remember what a document of such work costs."""
        n_documents, kind = sum(len(job.share) for job in jobs), hash(jobs[0].work)
        self._seconds = seconds
        self._costs.pop(kind, None)
        self._costs[kind] = max(seconds, 1e-6) / n_documents  # the last in order
        if len(self._costs) > MAX_KINDS:
            del self._costs[next(iter(self._costs))]
        self.on_batch(n_documents)


def _run(jobs: Sequence[_Job]) -> list[Outcome]:
    """Process requests together; if that fails, one by one, so that only the bad one fails."""
    work, documents = jobs[0].work, [each for job in jobs for each in job.share]
    try:
        results = work.run(documents, *work.arguments)
    except BaseException as error:  # noqa: BLE001 (also a panic, an exit or a StopIteration)
        if len(jobs) > 1:
            return [outcome for job in jobs for outcome in _run([job])]
        if isinstance(error, SetRNNError):  # says what is wrong with the request
            return [error]
        failure = WorkError()
        failure.__cause__ = error
        return [failure]
    ends = [0]
    for job in jobs:
        ends.append(ends[-1] + len(job.share))
    return [results[start:stop] for start, stop in pairwise(ends)]
