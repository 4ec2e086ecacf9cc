"""The runs of a comparison: which there are, which are done, and running the others.

They run in processes of this machine, or on a Ray cluster: one task per run, which Ray repeats
after a loss. A run whose worker or node is lost resumes from its checkpoint. All nodes must see the
same folders.
"""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import setrnn
from setrnn.comparison.records import RUNS, Comparison, Record, run_name
from setrnn.comparison.run import BUDGET, Task, begin_record, run
from setrnn.config import flatten, to_dict
from setrnn.errors import ConfigError, TrainingError, nearest_name
from setrnn.methods import METHODS, find_method
from setrnn.progress import OnProgress, Progress, ignore_progress, log
from setrnn.tagging.ray_cluster import MAX_RETRIES, check_node
from setrnn.training.pool import (
    STOPPING_SECONDS,
    TICK,
    Ended,
    Failure,
    Job,
    describe_error,
    take_ready,
)

ALL, LATER = "all", "later"  # groups of methods

Pool: TypeAlias = Callable[..., Generator[Ended, None, None]]  # such as `run_jobs`


def find_methods(names: str | Sequence[str]) -> list[str]:
    """Return the methods of "a,b,c" or of a list, in the order of the paper's tables.

    "all" stands for the paper's systems and ours, "later" for those of later papers.
    """
    if isinstance(names, str):
        names = names.split(",")
    groups = {
        ALL: [each.name for each in METHODS.values() if not each.is_later],
        LATER: [each.name for each in METHODS.values() if each.is_later],
    }
    given = [name.strip() for name in names if name.strip()]
    wanted = [method for name in given for method in groups.get(name, [name])]
    if not wanted:
        raise ConfigError('--methods names no method. Write "all", or names: br,set-rnn.')
    for name in wanted:
        if name not in METHODS:
            known = nearest_name(name, [*METHODS, *groups])
            raise ConfigError(f"There is no method '{name}'. {known}")
    mixtures = [name for name in wanted if METHODS[name].is_mixture]
    if mixtures and len(wanted) - len(mixtures) < 2:
        raise ConfigError(
            f"'{mixtures[0]}' mixes the other systems of the comparison: name at least two others."
        )
    return [name for name in METHODS if name in wanted]


def list_seeds(method: str, n_seeds: int) -> range:
    """Return the seeds of a method; a classical system does not depend on one and runs once."""
    return range(1 if find_method(method).family == "classical" else n_seeds)


def list_needed(method: str, seed: int, methods: Sequence[str]) -> tuple[str, ...]:
    """Return the runs whose models a run needs, of those that are made.

    A mixture needs all others, with the same seed if they have one. A network needs that from which
    it starts; if that is not made, it trains one itself.

    Example:
        >>> methods = ["br", "vinyals-uniform", "vinyals-max", "mixture"]
        >>> list_needed("mixture", 2, methods)
        ('br-0', 'vinyals-uniform-2', 'vinyals-max-2')
        >>> list_needed("vinyals-max", 2, methods)
        ('vinyals-uniform-2',)
    """
    if find_method(method).is_mixture:
        others = [each for each in methods if not find_method(each).is_mixture]
    else:
        others = [each for each in methods if each == find_method(method).first_method]
    return tuple(run_name(each, min(seed, list_seeds(each, seed + 1)[-1])) for each in others)


def find_done(records: Iterable[Record], tasks: Iterable[Task]) -> list[Record]:
    """Return the records of the tasks that are done.

    A run that failed is to be done again, and so is a mixture of other members.
    """
    needed = {task.name: list(task.needed) for task in tasks}
    return [
        record
        for record in records
        if record.failure is None
        and record.name in needed
        and (
            not METHODS[record.method].is_mixture
            or record.treatment.get("needed") == needed[record.name]
        )
    ]


def refuse_unequal_treatment(records: Iterable[Record], task: Task) -> None:
    """Refuse to add a run to runs that had other settings, apart from the seed, or budgets."""
    now = {**flatten(to_dict(task.config)), BUDGET: task.budget}
    for record in records:
        if record.failure is not None or record.is_added:
            continue
        before = {**flatten(record.config), BUDGET: record.treatment.get(BUDGET)}
        for name in now:
            if name != "seed" and before.get(name) != now[name]:
                raise ConfigError(
                    f"{task.folder} has the run {record.name} with other settings: {name} was "
                    f"{before.get(name)}, now {now[name]}. Choose another --out, or give the "
                    "settings it was made with."
                )


def run_tasks(
    comparison: Comparison,
    tasks: Sequence[Task],
    done: Sequence[Record],
    pool: Pool,
    on_progress: OnProgress,
) -> None:
    """Run the tasks that are not done yet, and write each record as soon as its run ends."""
    folder = tasks[0].folder
    if done:
        log.info(f"{len(done)} runs are done already.")
    for record in done:
        _remove_checkpoints(record.name, folder)  # left if a process was killed just before
    names = {record.name for record in done}
    left = {task.name: task for task in tasks if task.name not in names}
    shares = dict.fromkeys(left, 0.0)  # of each run that is done
    ended: list[Record] = []

    def count() -> str:
        n_failed = sum(record.failure is not None for record in ended)
        failed = f", {n_failed} failed" if n_failed else ""
        return f"{len(done) + len(ended)} of {len(done) + len(left)} runs{failed}"

    def report(event: Progress | None = None) -> None:
        if event is not None:
            shares[event.activity] = event.share
            on_progress(event)
        on_progress(Progress("runs", sum(shares.values()), len(left), "", count()))

    if left:
        report()  # so that the bar of all runs is the first bar
    with closing(pool(_make_jobs(left), on_progress=report)) as all_ended:
        for each in all_ended:
            record = _keep(left[each.job.name], comparison, each)
            ended.append(record)
            if each.failure is None:
                score = record.scores["test"][record.own_rule]["instance_f1"]
                result = f"instance-F1 {score:.3f} (rule {record.own_rule})"
            else:
                result = f"failed: {each.failure.message.rstrip('.')}"
            report(Progress(record.name, 1.0, 1.0, unit="", detail="done", part_of="runs"))
            log.info(
                f"{record.name}: {result}; {timedelta(seconds=round(each.seconds))} ({count()})"
            )
    if ended and not done and all(each.failure is not None for each in ended):
        assert ended[0].failure is not None
        message = ended[0].failure.message.rstrip(".")
        raise TrainingError(
            f"Every run failed ({len(ended)}). {ended[0].name}: {message}. See {folder / RUNS}."
        )


def _keep(task: Task, comparison: Comparison, ended: Ended) -> Record:
    """Write the record of a run that succeeded or failed."""
    record: Record = ended.value
    if ended.failure is None:
        _remove_checkpoints(task.name, task.folder)
    else:
        record = replace(begin_record(task, comparison.data_hash), failure=ended.failure)
    record.save(task.folder)
    return record


def _make_jobs(tasks: Mapping[str, Task]) -> list[Job]:
    """Return one job per task, in descending order of expected time, with the jobs after it."""
    jobs = [
        Job(name, partial(run, task), task.folder / RUNS / f"{name}.log", "runs", task.needed)
        for name, task in tasks.items()
    ]
    costs = {name: METHODS[task.method].relative_cost for name, task in tasks.items()}

    def cost_to_the_end(job: Job) -> float:
        later = [costs[each.name] for each in jobs if job.name in each.after]
        return costs[job.name] + max(later, default=0.0)

    return sorted(jobs, key=cost_to_the_end, reverse=True)  # the longest must not begin last


def _remove_checkpoints(name: str, folder: Path) -> None:
    """Remove the checkpoints of a run that is done."""
    for checkpoints in (folder / RUNS).glob(f"{name}-*.run"):
        shutil.rmtree(checkpoints, ignore_errors=True)


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
        on_progress: called when a job is given to the cluster.
        gpus_per_job: the GPUs of each job, such as 0.25.
    """
    import ray

    options = {"num_cpus": 1, "num_gpus": gpus_per_job, "max_calls": 1, "max_retries": MAX_RETRIES}
    task = ray.remote(**options)(_run_job)
    waiting, running = list(jobs), dict[Any, Job]()
    try:
        while waiting or running:
            for job in take_ready(waiting, [each.name for each in running.values()], n_jobs):
                job.log.parent.mkdir(parents=True, exist_ok=True)  # the node must see it
                running[task.remote(job, setrnn.__version__)] = job
                on_progress(Progress(job.name, 0, 1, "", "on the cluster", part_of=job.part_of))
            for reference in ray.wait(list(running), timeout=TICK)[0]:
                yield _read(reference, running.pop(reference))
    finally:
        if running:
            log.info("Stopping: the running jobs save their state.")
            for reference in running:
                ray.cancel(reference)  # raises KeyboardInterrupt in the task
            ray.wait(list(running), num_returns=len(running), timeout=STOPPING_SECONDS)


def _read(reference: object, job: Job) -> Ended:
    """Return the end of a job; raise ConfigError if no job can run on its node."""
    import ray

    try:
        seconds, value, failure = ray.get(reference)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, ConfigError):  # of `check_node`
            raise cause from None
        if "No module named 'setrnn'" in str(error):
            raise ConfigError(
                "A node of the Ray cluster has no setrnn. Install the same version everywhere."
            ) from error
        message = "its worker or node was lost too often. Is there enough memory?"
        return Ended(job, 0.0, failure=Failure("lost", message))
    return Ended(job, seconds, value, failure)


def _run_job(job: Job, version: str) -> tuple[float, Any, Failure | None]:
    """Run a job in a new process of the cluster; return its seconds, and its value or failure."""
    check_node(version, [job.log.parent])
    value, failure, start = None, None, time.monotonic()
    try:
        value = job.work(ignore_progress)
    except Exception as error:  # noqa: BLE001 (any error is the failure of this job alone)
        job.log.write_text(traceback.format_exc(), encoding="utf-8")
        failure = describe_error(error)
    return time.monotonic() - start, value, failure
