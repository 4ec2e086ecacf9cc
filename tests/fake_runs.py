"""Runs of a comparison without training, and a pool without processes."""

from dataclasses import replace

import numpy as np

from made_comparison import ERRORS, made_record
from setrnn.comparison.pool import Ended, Progressed, Started, failure_of
from setrnn.comparison.records import Comparison
from setrnn.config import to_dict


def fake_run(task, on_progress):
    """Return a made-up record, as if it had been trained."""
    on_progress("training", 0.5)
    comparison = Comparison.load(task.folder)
    random = np.random.default_rng(task.seed)
    record = made_record(comparison, task.method, task.seed, ERRORS[task.method], random)
    return replace(record, config=to_dict(task.config), treatment=task.treatment)


def run_here(jobs, n_jobs, on_stop=lambda: None):
    """Run jobs one after the other, in this process."""
    for job in jobs:
        yield Started(job)
        told = []
        try:
            value = job.work(lambda activity, share, told=told: told.append((activity, share)))
        except Exception as error:  # noqa: BLE001 (as the pool does)
            yield Ended(job, 1.0, failure=failure_of(error))
            continue
        for activity, share in told:
            yield Progressed(job, activity, share)
        yield Ended(job, 1.0, value)
