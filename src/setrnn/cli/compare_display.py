"""What `compare` shows while its runs go on: each of them, all of them, and the time left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich import progress as rich_progress

from setrnn.cli.console import note, stderr

if TYPE_CHECKING:
    from setrnn.comparison.records import Failure

MINUTE, HOUR = 60, 3600


@contextmanager
def comparison_display(
    what: str,
    methods: Mapping[str, str],
    n_jobs: int,
    measured: Mapping[str, Sequence[float]],
    n_done: int = 0,
) -> Iterator[ComparisonDisplay]:
    """Yield what shows jobs as they go.

    Args:
        what: they are called, such as "runs".
        methods: the method of each job to do, by its name, in their order.
        n_jobs: how many go at once.
        measured: the seconds that finished ones took, by method.
        n_done: how many were done before.
    """
    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(bar_width=30),
        rich_progress.TextColumn("{task.fields[detail]}", markup=False),
    )
    bars = rich_progress.Progress(*columns, console=stderr)
    with bars if stderr.is_terminal else nullcontext():
        yield ComparisonDisplay(bars, what, methods, n_jobs, measured, n_done)


class ComparisonDisplay:
    """On a terminal a bar for each running job and one for all; a line as each ends."""

    def __init__(
        self,
        bars: rich_progress.Progress,
        what: str,
        methods: Mapping[str, str],
        n_jobs: int,
        measured: Mapping[str, Sequence[float]],
        n_done: int,
    ) -> None:
        self._bars, self._what, self._methods, self._n_jobs = bars, what, methods, n_jobs
        self._seconds = {method: list(each) for method, each in measured.items()}
        self._waiting = list(methods)
        self._running: dict[str, _Bar] = {}
        self._n_ended, self._n_failed = n_done, 0
        self._n_total = n_done + len(methods)
        self._all = bars.add_task(f"all {what}", total=self._n_total, detail="")
        self.update()

    def started(self, name: str) -> None:
        """Show a job that begins."""
        self._waiting.remove(name)
        task = self._bars.add_task(name, total=1.0, detail="starting")
        self._running[name] = _Bar(task, time.monotonic())
        self.update()

    def progressed(self, name: str, activity: str, share: float) -> None:
        """Show how far a job is."""
        self._running[name].share = share
        self._bars.update(self._running[name].task, completed=share, detail=activity)
        self.update()

    def ended(self, name: str, seconds: float, result: str, failure: Failure | None = None) -> None:
        """Take a job away, and say what came of it."""
        self._bars.remove_task(self._running.pop(name).task)
        self._n_ended += 1
        if failure is None:
            self._seconds.setdefault(self._methods[name], []).append(seconds)
        else:
            self._n_failed += 1
            result = f"failed: {failure.message}"
        self.update()
        note(f"{name}: {result}; {duration(seconds)} ({self._standing()})")

    def update(self) -> None:
        """Tell the time left anew."""
        self._bars.update(self._all, completed=self._n_ended, detail=self._standing())

    def _standing(self) -> str:
        failed = f", {self._n_failed} failed" if self._n_failed else ""
        left = self._time_left()
        about = "" if left is None else f", about {duration(left)} left"
        return f"{self._n_ended} of {self._n_total} {self._what}{failed}{about}"

    def _time_left(self) -> float | None:
        from setrnn.comparison.time_left import Running, time_left

        if not self._running and not self._waiting:
            return None
        now = time.monotonic()
        running = [
            Running(self._methods[name], now - bar.start, bar.share)
            for name, bar in self._running.items()
        ]
        waiting = [self._methods[name] for name in self._waiting]
        return time_left(self._seconds, running, waiting, self._n_jobs)


class _Bar:
    def __init__(self, task: rich_progress.TaskID, start: float) -> None:
        self.task, self.start, self.share = task, start, 0.0


def duration(seconds: float) -> str:
    """Write a time for people."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h"
