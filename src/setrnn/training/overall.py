"""The progress of several jobs together, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from setrnn.progress import Note, OnProgress, Progress
from setrnn.training.pool import Ended

MINUTE, HOUR = 60, 3600


@dataclass
class Overall:
    """The progress of several jobs together, weighted by their expected costs.

    Used as the callback of the jobs: it passes their progress on.
    """

    name: str  # of the jobs, such as "runs"
    costs: Mapping[str, float]  # per job
    on_progress: OnProgress
    n_ended: int = 0  # counts jobs that were done before, too
    n_failed: int = 0
    shares: dict[str, float] = field(default_factory=dict)  # that are done, per job
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._start = self.clock()
        self._n_total = self.n_ended + len(self.costs)

    def __call__(self, event: Progress | Note) -> None:
        """Pass on the progress of one job, and report that of all."""
        if not self.shares:
            self._report()  # first, so that the bar of all jobs is the first bar
        self.on_progress(event)
        if isinstance(event, Progress):
            self.shares[event.activity] = event.share
            self._report()

    def end(self, ended: Ended, result: str) -> None:
        """Report the end of a job."""
        name = ended.job.name
        self.n_ended += 1
        if ended.failure is not None:
            self.n_failed += 1
            result = f"failed: {ended.failure.message.rstrip('.')}"
        self(Progress(name, 1.0, 1.0, unit="", detail="done", part_of=self.name))
        left = self._estimate_seconds_left()
        about = "" if left is None else f", about {format_duration(left)} left"
        duration = format_duration(ended.seconds)
        self.on_progress(Note(f"{name}: {result}; {duration} ({self._count()}{about})"))

    def _report(self) -> None:
        done, total = self._work_done(), sum(self.costs.values())
        self.on_progress(Progress(self.name, done, total, unit="", detail=self._count()))

    def _count(self) -> str:
        failed = f", {self.n_failed} failed" if self.n_failed else ""
        return f"{self.n_ended} of {self._n_total} {self.name}{failed}"

    def _work_done(self) -> float:
        return sum(self.costs[name] * share for name, share in self.shares.items())

    def _estimate_seconds_left(self) -> float | None:
        """Extrapolate from the work that is done; None if nothing is left."""
        done, total = self._work_done(), sum(self.costs.values())
        if self.n_ended == self._n_total or not done:
            return None
        return (self.clock() - self._start) * (total - done) / done


def format_duration(seconds: float) -> str:
    """Write a time in seconds, minutes or hours."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h"
