import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pool_works
import pytest

from setrnn.training.pool import Job, describe_error, run_jobs


@pytest.fixture
def job(tmp_path):
    def make(name, work, *arguments, after=()):
        log = tmp_path / "runs" / f"{name}.log"
        return Job(name, partial(work, *arguments), log, "runs", after)

    return make


def test_a_failing_job_does_not_stop_the_others(job, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    jobs = [
        job("refuses", pool_works.refuse),
        job("breaks", pool_works.break_down),
        job("vanishes", pool_works.vanish),
        job("killed", pool_works.be_killed),
        job("counts", pool_works.count, 41),
        job("threads", pool_works.read_threads),
    ]
    events, found, most = [], {}, 0
    for ended in run_jobs(jobs, 3, events.append, n_threads=2):
        started = {event.activity for event in events}
        most = max(most, len(started - set(found)))
        found[ended.job.name] = ended
    assert started == {each.name for each in jobs}
    assert most == 3  # no more at once than asked for, and no fewer

    failures = {name: each.failure for name, each in found.items() if each.failure}
    assert failures["refuses"].message == "train.jsonl is empty. Give another."
    assert failures["breaks"].kind == "ZeroDivisionError"
    assert failures["breaks"].message == "ZeroDivisionError: over here"
    assert "exit code 7" in failures["vanishes"].message
    assert "SIGKILL" in failures["killed"].message
    assert "memory" in failures["killed"].message
    log = (tmp_path / "runs" / "breaks.log").read_text()
    assert "a library prints" in log
    assert "break_down" in log  # the traceback

    assert (found["counts"].value, found["counts"].failure) == (42, None)
    assert not (tmp_path / "runs" / "counts.log").exists()
    told = [event for event in events if event.activity == "counts"]
    assert [(each.detail, each.share) for each in told] == [("starting", 0.0), ("one", 0.5)]
    assert {each.part_of for each in told} == {"runs"}

    assert found["threads"].value == "2"
    assert "OMP_NUM_THREADS" not in os.environ


def test_stopped_jobs_save_and_the_others_never_start(job, tmp_path, notes):
    jobs = [
        job("first", pool_works.save_when_stopped, tmp_path / "kept"),
        job("second", pool_works.count, 1),
    ]
    events = []

    def interrupt(event):
        """Interrupt as Ctrl-C does, once the first job is in its training."""
        events.append(event)
        if event.share:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), closing(run_jobs(jobs, 1, interrupt)) as all_ended:
        list(all_ended)
    assert (tmp_path / "kept").read_text() == "saved"
    assert "Stopping" in notes.texts[-1]
    assert {event.activity for event in events} == {"first"}
    assert not list((tmp_path / "runs").iterdir())


DIE_WITH_A_JOB = """
import os, signal, sys
from functools import partial
from pathlib import Path
import pool_works
from setrnn.training.pool import Job, run_jobs

def die(event):
    if event.share:
        os.kill(os.getpid(), signal.SIGKILL)

place = Path(sys.argv[1])
work = partial(pool_works.save_when_stopped, place / "kept")
list(run_jobs([Job("first", work, place / "first.log")], 1, die))
"""


def test_a_job_saves_and_ends_when_its_parent_is_killed(tmp_path):
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", DIE_WITH_A_JOB, str(tmp_path)]
    killed = subprocess.run(command, env=here, check=False, timeout=100)
    assert killed.returncode == -signal.SIGKILL
    end = time.monotonic() + 30
    while not (tmp_path / "kept").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert (tmp_path / "kept").read_text() == "saved"


def test_a_job_starts_when_those_it_needs_have_ended_and_waits_for_no_other(job, tmp_path):
    file = tmp_path / "written"
    jobs = [
        job("writes", pool_works.write_file, file, after=("refuses", "done before")),
        job("waits", pool_works.wait_for_file, file),
        job("refuses", pool_works.refuse),
    ]
    ended = [(each.job.name, each.failure is None) for each in run_jobs(jobs, 2)]
    assert ended[0] == ("refuses", False)
    assert sorted(ended[1:]) == [("waits", True), ("writes", True)]


@pytest.mark.parametrize("said", ["CUDA out of memory.", "CUDNN_STATUS_ALLOC_FAILED"])
def test_the_way_out_of_a_full_gpu_is_named(said):
    assert "memory" in describe_error(RuntimeError(said)).message
    assert "Try fewer jobs" in describe_error(RuntimeError(said)).message
