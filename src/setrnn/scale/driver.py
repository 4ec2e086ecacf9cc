"""The driver of a large prediction: gives shards to workers until each has a record.

A shard whose worker dies is tried again elsewhere. After several deaths its documents are tried in
halves, until those that kill a worker are found: they are left out, and the shard is tagged again.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from setrnn.progress import OnProgress, Progress
from setrnn.scale.plan import Shard
from setrnn.scale.worker import Record, Task
from setrnn.scale.workers import Outcome, Workers

MOST_DEATHS = 3  # of the workers of one shard, before its documents are tried
MOST_TRIAL_DEATHS = 2  # of the workers of some of its documents
TICK = 1.0
TOO_LONG = "took longer than {:g} minutes"

Say: TypeAlias = Callable[[str], None]


@dataclass
class _State:
    """What has happened to a shard."""

    shard: Shard
    n_deaths: Counter[tuple[int, int] | None] = field(default_factory=Counter)
    n_open: int = 0  # trials that have not ended
    left_out: dict[int, str] = field(default_factory=dict)
    n_before: int = -1  # documents that were left out when the last trials began


class Driver:
    """Runs shards on workers."""

    def __init__(
        self,
        workers: Workers[Task, Record | None],
        shards: Sequence[Shard],
        limit_seconds: float,
        on_progress: OnProgress,
        say: Say,
        n_rows_done: int = 0,
        n_rows: int = 0,
        n_shards: int = 0,
    ) -> None:
        self.workers, self.limit_seconds = workers, limit_seconds
        self.on_progress, self.say = on_progress, say
        self.states = {each.number: _State(each) for each in shards}
        self.queue = deque(Task(each) for each in shards)
        self.started: dict[Task, float] = {}
        self.is_late: set[Task] = set()
        self.n_rows_done, self.n_rows = n_rows_done, n_rows
        self.n_shards_done, self.n_shards = n_shards - len(shards), n_shards
        self.lost: list[tuple[Shard, str]] = []  # shards that no worker survives

    def run(self) -> None:
        """Do all shards; raise the first error that another try cannot mend."""
        while self.queue or self.started:
            while self.queue and self.workers.has_room():
                task = self.queue.popleft()
                self.started[task] = time.monotonic()
                self.workers.submit(task)
            for outcome in self.workers.wait(TICK):
                self._end(outcome)
            self._cancel_late()
            self._report()

    def _end(self, outcome: Outcome[Task, Record | None]) -> None:
        task = outcome.task
        del self.started[task]
        state = self.states[task.shard.number]
        if outcome.failure is not None:
            self.say(f"shard {task.shard.name}: {outcome.failure.message}")
            if not outcome.failure.is_lack:
                raise outcome.failure.error()
            self.queue.append(task)
        elif outcome.death:
            late = TOO_LONG.format(self.limit_seconds / 60) if task in self.is_late else ""
            self.is_late.discard(task)
            self._count_death(
                state, task, late or f"its worker was lost: {outcome.death.rstrip('.')}"
            )
        elif outcome.result is not None:
            self._count_done(outcome.result)
        else:
            self._end_trial(state)

    def _count_done(self, record: Record) -> None:
        self.n_shards_done += 1
        self.n_rows_done += record.n_rows + len(record.bad_rows)
        bad = f", {len(record.bad_rows):,} bad rows" if record.bad_rows else ""
        self.say(f"shard {record.number:06d}: {record.n_rows:,} documents{bad}")

    def _count_death(self, state: _State, task: Task, why: str) -> None:
        state.n_deaths[task.only] += 1
        self.say(f"shard {task.shard.name}{_shown(task)}: {why}")
        n_most = MOST_DEATHS if task.only is None else MOST_TRIAL_DEATHS
        if state.n_deaths[task.only] < n_most:
            self.queue.append(task)
        elif task.only is None:
            self._begin_trials(state, why)
        elif task.only[1] - task.only[0] > 1:
            self._try_halves(state, *task.only)
            self._end_trial(state)
        else:
            state.left_out[task.only[0]] = why
            self._end_trial(state)

    def _begin_trials(self, state: _State, why: str) -> None:
        """Try the documents of a shard in halves, unless that has found nothing before."""
        if len(state.left_out) == state.n_before:
            self.lost.append((state.shard, why))
            self.say(f"shard {state.shard.name}: given up; no single document is the reason")
            return
        state.n_before = len(state.left_out)
        state.n_deaths.clear()
        self._try_halves(state, 0, state.shard.rows.n_rows)

    def _try_halves(self, state: _State, start: int, stop: int) -> None:
        middle = (start + stop + 1) // 2
        for only in ((start, middle), (middle, stop)):
            if only[1] > only[0]:
                state.n_open += 1
                self.queue.appendleft(Task(state.shard, only=only))

    def _end_trial(self, state: _State) -> None:
        """Tag the shard again after its last trial, without the documents that were found."""
        state.n_open -= 1
        if not state.n_open:
            self.queue.appendleft(Task(state.shard, tuple(sorted(state.left_out.items()))))

    def _cancel_late(self) -> None:
        now = time.monotonic()
        for task, start in self.started.items():
            if now - start > self.limit_seconds and task not in self.is_late:
                self.is_late.add(task)
                self.workers.cancel(task)

    def _report(self) -> None:
        n_done = self.n_rows_done + self.workers.n_documents()
        n_ready = self.workers.n_ready()
        shards = f"{self.n_shards_done:,}/{self.n_shards:,} shards"
        workers = f"{n_ready:,} worker{'s' * (n_ready != 1)}"
        self.on_progress(
            Progress(
                "tagging",
                min(n_done, self.n_rows),
                self.n_rows,
                unit="docs",
                counts=f"{shards}, {workers}",
            )
        )


def _shown(task: Task) -> str:
    return "" if task.only is None else f", documents {task.only[0] + 1:,} to {task.only[1]:,}"
