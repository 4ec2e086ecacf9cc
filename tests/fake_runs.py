"""Runs of a comparison without training, and a pool without processes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

import setrnn
from made_comparison import ERRORS, made_record
from setrnn.comparison.records import Comparison
from setrnn.comparison.run import begin_record
from setrnn.progress import Progress, ignore_progress
from setrnn.training.pool import Ended, describe_error, take_ready


def fake_run(task, on_progress=ignore_progress):
    """Return a made-up record, as if it had been trained."""
    on_progress(Progress("training", 0.5, 1.0))
    comparison = Comparison.load(task.folder)
    begun = begin_record(task, comparison.data_hash)
    random = np.random.default_rng(begun.seed)
    record = made_record(comparison, task.method, begun.seed, ERRORS.get(task.method, 0.2), random)
    return replace(record, config=begun.config, treatment=begun.treatment)


def run_here(jobs, n_jobs, on_progress=ignore_progress, n_threads=1):
    """Run jobs one after the other, in this process."""
    waiting = list(jobs)
    while waiting:
        (job,) = take_ready(waiting, [], 1)

        def report(event, job=job):
            on_progress(replace(event, activity=job.name, part_of=job.part_of))

        try:
            value = job.work(report)
        except Exception as error:  # noqa: BLE001 (as the pool does)
            yield Ended(job, 1.0, failure=describe_error(error))
        else:
            yield Ended(job, 1.0, value)


def install_fake_runs(monkeypatch, run=fake_run):
    """Let comparisons run `run` in this process instead of training; return the names of runs."""
    names = []

    def noted(task, on_progress):
        names.append(task.name)
        return run(task, on_progress)

    monkeypatch.setattr("setrnn.comparison.plan.run", noted)
    monkeypatch.setattr("setrnn.comparison.compare.run_jobs", run_here)
    return names


def install_fake_report(monkeypatch):
    """Let reports be only the name of their page: what the page holds is tested elsewhere."""

    def build_report(folder, out=None, on_progress=None):
        page = folder / "report" / "index.html"
        return SimpleNamespace(page=page, answer=["Use br."], systems=None, caveats=[])

    monkeypatch.setitem(vars(setrnn), "build_report", build_report)
