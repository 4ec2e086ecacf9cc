"""The runs of a comparison on a Ray cluster: one task per run, which Ray repeats after a loss.

A run whose worker or node is lost resumes from its checkpoint. All nodes must see the same folders.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Generator, Sequence
from typing import Any

import setrnn
from setrnn.errors import ConfigError
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
    """Return the end of a job; raise ConfigError if no job could run on its node."""
    import ray

    try:
        seconds, value, failure = ray.get(reference)
    except ray.exceptions.RayError as error:
        if "No module named 'setrnn'" in str(error):
            raise ConfigError(
                "A node of the Ray cluster has no setrnn. Install the same version everywhere."
            ) from error
        message = "its worker or node was lost too often. Is there enough memory?"
        return Ended(job, 0.0, failure=Failure("lost", message))
    if failure is not None and failure.kind == "node":
        raise ConfigError(failure.message)
    return Ended(job, seconds, value, failure)


def _run_job(job: Job, version: str) -> tuple[float, Any, Failure | None]:
    """Run a job in a new process of the cluster; return its seconds, and its value or failure."""
    start = time.monotonic()
    try:
        check_node(version, [job.log.parent])
    except ConfigError as error:
        return 0.0, None, Failure("node", str(error))
    try:
        value = job.work(ignore_progress)
    except Exception as error:  # noqa: BLE001 (any error is the failure of this job alone)
        job.log.write_text(traceback.format_exc(), encoding="utf-8")
        return time.monotonic() - start, None, describe_error(error)
    return time.monotonic() - start, value, None
