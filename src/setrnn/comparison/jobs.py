"""What the processes of a comparison do: a run each, or a search for settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from setrnn.comparison.pool import Job
from setrnn.comparison.records import RUNS
from setrnn.comparison.run import OnProgress, Task, run
from setrnn.comparison.tuning import TUNING
from setrnn.data.prepared import Prepared

if TYPE_CHECKING:
    from setrnn.comparison.tuning import Tuned

# Training ends by itself within its budget; a run that takes far more is ended.
LIMIT_FACTOR, LIMIT_SECONDS = 2, 60


def run_job(task: Task) -> Job:
    """Make the job of a run."""
    log = task.folder / RUNS / f"{task.name}.log"
    return Job(task.name, partial(run, task), log, _limit(task))


def tuning_job(task: Task, n_trials: int) -> Job:
    """Make the job that searches the settings of a run's method."""
    log = task.folder / TUNING / f"{task.method}.log"
    return Job(task.method, partial(_tune, task, n_trials), log, _limit(task, n_trials))


def _limit(task: Task, n_trainings: int = 1) -> float | None:
    """Return after how many seconds a job that trains so often is ended."""
    if task.budget_seconds is None:
        return None
    return n_trainings * (LIMIT_FACTOR * task.budget_seconds + LIMIT_SECONDS)


def _tune(task: Task, n_trials: int, on_progress: OnProgress) -> Tuned:
    from setrnn.comparison.tuning import tuned_config

    return tuned_config(
        Prepared(task.prepared),
        task.method,
        task.config,
        n_trials,
        task.folder,
        task.device,
        on_progress,
        task.budget_seconds,
    )
