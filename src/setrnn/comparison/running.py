"""The runs of a comparison as jobs: search settings, train, and keep each record at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from setrnn.comparison.plan import Plan, expect_seconds, failed_record, longest_first, make_plan
from setrnn.comparison.records import RUNS, Comparison, Failure, Record, load_records
from setrnn.comparison.run import Task, run
from setrnn.comparison.tuning import TUNING, Tuned, tune_method
from setrnn.errors import TrainingError
from setrnn.progress import Note, OnProgress
from setrnn.training.overall import Overall
from setrnn.training.pool import Ended, Job

# Training ends by itself within its budget; a run that takes far longer is killed.
LIMIT_FACTOR, LIMIT_SECONDS = 2, 60


class Pool(Protocol):
    """Where jobs run, side by side: processes of this machine, or a cluster."""

    def __call__(
        self, jobs: Sequence[Job], *, on_progress: OnProgress
    ) -> Generator[Ended, None, None]:
        """Run jobs, and yield each at its end."""


def run_tasks(
    comparison: Comparison,
    tasks: Sequence[Task],
    n_trials: int,
    pool: Pool,
    on_progress: OnProgress,
) -> None:
    """Search settings if there are trials, then run what is not done yet."""
    folder = tasks[0].folder
    failed: list[Record] = []
    if n_trials:
        mixtures = [task for task in tasks if task.members]  # they have no settings to search
        trained = [task for task in tasks if not task.members]
        tasks, failed = _tune_all(comparison, trained, n_trials, pool, on_progress)
        tasks = [*tasks, *mixtures]
    plan = make_plan(folder, comparison, tasks)
    ended = [*failed, *plan.done, *_run_all(folder, comparison, plan, pool, on_progress)]
    failures = [(each.name, each.failure) for each in ended if each.failure is not None]
    if failures and len(failures) == len(ended):
        name, failure = failures[0]
        message = failure.message.rstrip(".")
        raise TrainingError(
            f"Every run failed ({len(ended)}). {name}: {message}. See {folder / RUNS}."
        )


def _tune_all(
    comparison: Comparison,
    tasks: Sequence[Task],
    n_trials: int,
    pool: Pool,
    on_progress: OnProgress,
) -> tuple[list[Task], list[Record]]:
    """Search the settings of each method; return its tasks with them, or records of failures."""
    folder = tasks[0].folder
    first = {task.method: task for task in reversed(tasks)}
    jobs = [_tuning_job(task, n_trials) for task in longest_first([*first.values()])]
    found: dict[str, Tuned] = {}
    failures: dict[str, Failure] = {}

    def keep(ended: Ended) -> str:
        if ended.failure is None:
            found[ended.job.name] = ended.value
        else:
            failures[ended.job.name] = ended.failure
        return f"settings chosen from {n_trials} trials"

    costs = expect_seconds(job.name for job in jobs)
    _run_jobs(jobs, pool, Overall("searches", costs, on_progress), keep)
    tuned = [
        replace(
            task,
            config=replace(found[task.method].config, seed=task.seed),
            trials=found[task.method].trials,
        )
        for task in tasks
        if task.method in found
    ]
    done = {each.name for each in load_records(folder, comparison) if each.failure is None}
    failed = [
        failed_record(task, comparison, failures[task.method])
        for task in tasks
        if task.method in failures and task.name not in done
    ]
    for record in failed:
        record.save(folder)
    return tuned, failed


def _run_all(
    folder: Path, comparison: Comparison, plan: Plan, pool: Pool, on_progress: OnProgress
) -> list[Record]:
    """Run the tasks of the plan, and write each record as soon as its run ends."""
    if plan.done:
        on_progress(Note(f"{len(plan.done)} runs are done already."))
    for record in plan.done:
        _remove_checkpoints(record, folder)  # left if a process was killed just before
    tasks = {task.name: task for task in plan.tasks}
    records: list[Record] = []

    def keep(ended: Ended) -> str:
        task = tasks[ended.job.name]
        if ended.failure is None:
            record: Record = ended.value
        else:
            record = failed_record(task, comparison, ended.failure)
        record.save(task.folder)
        records.append(record)
        if ended.failure is not None:
            return ended.failure.message
        _remove_checkpoints(record, task.folder)
        score = record.scores["test"][record.own_rule]["instance_f1"]
        return f"instance-F1 {score:.3f} (rule {record.own_rule})"

    seconds = expect_seconds([task.method for task in plan.tasks], plan.done)
    costs = {task.name: seconds[task.method] for task in plan.tasks}
    overall = Overall("runs", costs, on_progress, len(plan.done))
    jobs = [_run_job(task) for task in plan.tasks]
    if any(task.n_jobs > 1 for task in plan.tasks):  # side by side, the longest must not begin last
        jobs.sort(key=lambda job: costs[job.name] + _cost_after(job, jobs, costs), reverse=True)
    _run_jobs(jobs, pool, overall, keep)
    return records


def _cost_after(job: Job, jobs: Sequence[Job], costs: Mapping[str, float]) -> float:
    """Return the cost of the longest job that waits for another one."""
    return max((costs[each.name] for each in jobs if job.name in each.after), default=0.0)


def _remove_checkpoints(record: Record, folder: Path) -> None:
    """Remove the checkpoints of a run that is done."""
    for checkpoints in (folder / RUNS).glob(f"{record.name}-*.run"):
        shutil.rmtree(checkpoints, ignore_errors=True)


def _run_job(task: Task) -> Job:
    """Return the job of one run."""
    log = task.folder / RUNS / f"{task.name}.log"
    after = task.members or tuple(filter(None, [task.starts_from]))  # it needs their models
    return Job(task.name, partial(run, task), log, _limit_seconds(task), "runs", after)


def _tuning_job(task: Task, n_trials: int) -> Job:
    """Return the job that searches the settings of a method."""
    log = task.folder / TUNING / f"{task.method}.log"
    limit = _limit_seconds(task, n_trials)
    return Job(task.method, partial(tune_method, task, n_trials), log, limit, "searches")


def _limit_seconds(task: Task, n_trainings: int = 1) -> float | None:
    """Return the time after which a job is killed."""
    if task.budget_seconds is None or task.members:
        return None
    return n_trainings * (LIMIT_FACTOR * task.budget_seconds + LIMIT_SECONDS)


def _run_jobs(
    jobs: Sequence[Job], pool: Pool, overall: Overall, keep: Callable[[Ended], str]
) -> None:
    """Run jobs; `keep` stores the result of each and returns it in words."""
    with closing(pool(jobs, on_progress=overall)) as all_ended:
        for ended in all_ended:
            overall.end(ended, keep(ended))
