import os
import time
from contextlib import closing
from functools import partial

import pool_works
import pytest

from setrnn.comparison.pool import OVER_BUDGET, Ended, Job, Progressed, Started, run_jobs


@pytest.fixture
def job(tmp_path):
    def make(name, work, *arguments, limit=None):
        return Job(name, partial(work, *arguments), tmp_path / "runs" / f"{name}.log", limit)

    return make


def ended(jobs, n_jobs=2):
    return {event.job.name: event for event in run_jobs(jobs, n_jobs) if isinstance(event, Ended)}


def test_values_come_back_and_progress_on_the_way(job):
    events = list(run_jobs([job("one", pool_works.count, 1)], 1))
    kinds = [type(event) for event in events if isinstance(event, Started | Progressed | Ended)]
    assert kinds == [Started, Progressed, Ended]
    told = next(event for event in events if isinstance(event, Progressed))
    assert (told.activity, told.share) == ("counting", 0.5)
    assert events[-1].value == 2
    assert events[-1].failure is None


def test_a_job_that_fails_is_only_its_own_failure(job, tmp_path):
    jobs = [
        job("refuses", pool_works.refuse),
        job("breaks", pool_works.break_down),
        job("vanishes", pool_works.vanish),
        job("killed", pool_works.be_killed),
        job("counts", pool_works.count, 41),
    ]
    found = ended(jobs)
    assert found["counts"].value == 42
    failures = {name: each.failure for name, each in found.items() if each.failure}
    assert failures["refuses"].message == "train.jsonl is empty. Give another."
    assert failures["breaks"].kind == "ZeroDivisionError"
    assert failures["breaks"].message == "ZeroDivisionError: over here"
    assert "exit code 7" in failures["vanishes"].message
    assert "SIGKILL" in failures["killed"].message
    log = (tmp_path / "runs" / "breaks.log").read_text()
    assert "a library talks" in log
    assert "break_down" in log  # the traceback
    assert not (tmp_path / "runs" / "counts.log").exists()


def test_a_job_far_over_its_budget_is_ended(job):
    start = time.monotonic()
    found = ended([job("slow", pool_works.sleep, 60, limit=0.5)])
    assert found["slow"].failure.kind == OVER_BUDGET
    assert "--budget" in found["slow"].failure.message
    assert time.monotonic() - start < 30


def test_no_more_jobs_run_at_once_than_asked_for(job):
    running, most = 0, 0
    for event in run_jobs([job(str(n), pool_works.count, n) for n in range(4)], 2):
        running += isinstance(event, Started) - isinstance(event, Ended)
        most = max(most, running)
    assert most == 2


def test_jobs_share_the_cores(job, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("setrnn.comparison.pool.n_cores", lambda: 8)
    assert ended([job("one", pool_works.tell_threads)], n_jobs=3)["one"].value == "2"
    assert "OMP_NUM_THREADS" not in os.environ


def test_stopped_jobs_may_save_and_the_others_never_start(job, tmp_path):
    said, started = [], []
    jobs = [
        job("first", pool_works.save_when_stopped, tmp_path / "kept"),
        job("second", pool_works.count, 1),
    ]
    with closing(run_jobs(jobs, 1, lambda: said.append("stopping"))) as events:
        for event in events:
            if isinstance(event, Started):
                started.append(event.job.name)
            if isinstance(event, Progressed):
                break
    assert (tmp_path / "kept").read_text() == "saved"
    assert said == ["stopping"]
    assert started == ["first"]
    assert not list((tmp_path / "runs").iterdir())
