import os
import time
from contextlib import closing
from functools import partial

import pool_works
import pytest

from setrnn.progress import Note, Progress
from setrnn.training import pool
from setrnn.training.overall import Overall, format_duration
from setrnn.training.pool import (
    CROWDED_GPU,
    FULL_GPU,
    OVER_BUDGET,
    Ended,
    Failure,
    Job,
    Room,
    run_jobs,
)


@pytest.fixture
def job(tmp_path):
    def make(name, work, *arguments, limit=None, after=()):
        log = tmp_path / "runs" / f"{name}.log"
        return Job(name, partial(work, *arguments), log, limit, "runs", after)

    return make


def test_a_failing_job_does_not_stop_the_others(job, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    jobs = [
        job("refuses", pool_works.refuse),
        job("breaks", pool_works.break_down),
        job("vanishes", pool_works.vanish),
        job("killed", pool_works.be_killed),
        job("hangs", pool_works.wait_for_ever, limit=0.1),
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
    assert failures["hangs"].kind == OVER_BUDGET
    assert "--budget" in failures["hangs"].message
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


def test_stopped_jobs_save_and_the_others_never_start(job, tmp_path):
    jobs = [
        job("first", pool_works.save_when_stopped, tmp_path / "kept"),
        job("second", pool_works.count, 1),
    ]
    events = []

    def interrupt(event):
        """Interrupt as Ctrl-C does, once the first job is in its training."""
        events.append(event)
        if isinstance(event, Progress) and event.share:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), closing(run_jobs(jobs, 1, interrupt)) as all_ended:
        list(all_ended)
    assert (tmp_path / "kept").read_text() == "saved"
    (note,) = (event for event in events if isinstance(event, Note))
    assert "Stopping" in note.text
    assert {event.activity for event in events if isinstance(event, Progress)} == {"first"}
    assert not list((tmp_path / "runs").iterdir())


def test_a_generator_closed_early_stops_the_running_jobs(job, tmp_path):
    jobs = [
        job("one", pool_works.count, 1),
        job("first", pool_works.save_when_stopped, tmp_path / "kept"),
    ]
    with closing(run_jobs(jobs, 2)) as all_ended:
        assert isinstance(next(all_ended), Ended)
    assert not list((tmp_path / "runs").iterdir())


def test_the_end_of_a_job_says_how_much_is_left(tmp_path):
    events, now = [], [0.0]
    costs = {"a": 3.0, "b": 1.0, "c": 1.0}
    overall = Overall("runs", costs, events.append, n_ended=1, clock=lambda: now[0])
    now[0] = 300.0
    jobs = {name: Job(name, None, tmp_path / name) for name in costs}
    overall.end(Ended(jobs["a"], 300.0), "fine")
    overall.end(Ended(jobs["b"], 2.0, failure=Failure("ValueError", "no")), "")
    overall.end(Ended(jobs["c"], 2.0), "fine")
    assert [each.text for each in events if isinstance(each, Note)] == [
        "a: fine; 5 min (2 of 4 runs, about 3 min left)",
        "b: failed: no; 2 s (3 of 4 runs, 1 failed, about 75 s left)",
        "c: fine; 2 s (4 of 4 runs, 1 failed)",
    ]


def test_durations_are_written_for_people():
    found = [format_duration(each) for each in (0.4, 100, 600, 9000)]
    assert found == ["0 s", "100 s", "10 min", "2.5 h"]


def test_a_job_starts_when_those_it_needs_have_ended_and_waits_for_no_other(job, tmp_path):
    file = tmp_path / "written"
    jobs = [
        job("writes", pool_works.write_file, file, after=("refuses", "done before")),
        job("waits", pool_works.wait_for_file, file, limit=60),
        job("refuses", pool_works.refuse),
    ]
    ended = [(each.job.name, each.failure is None) for each in run_jobs(jobs, 2)]
    assert ended[0] == ("refuses", False)
    assert sorted(ended[1:]) == [("waits", True), ("writes", True)]


def test_a_job_that_finds_the_gpu_full_beside_others_runs_again(job, tmp_path):
    told = tmp_path / "told"
    jobs = [
        job("fills", pool_works.fill_gpu_once, tmp_path / "tried"),
        job("waits", pool_works.wait_for_file, told, limit=60),
    ]

    def listen(event):
        if isinstance(event, Note) and "at most 1 at a time" in event.text:
            told.touch()

    ended = [(each.job.name, each.failure, each.value) for each in run_jobs(jobs, 2, listen)]
    assert ended == [("waits", None, None), ("fills", None, "fits")]


@pytest.mark.parametrize(
    ("n_times", "n_free", "n_own", "kind", "n_tries"),
    [
        (2, 0, 1, None, 3),
        (99, 0, 1, CROWDED_GPU, 3),
        (2, None, 0, None, 3),  # no room for the little that a process needs to ask
        (99, 0, 4, FULL_GPU, 1),  # the job itself holds all
        (99, 0, 3.5, FULL_GPU, 1),  # the rest is what a process holds beside its tensors
        (99, 1.8, 2, FULL_GPU, 1),
    ],
    ids=["room later", "no room", "not known", "alone", "context", "free"],
)
def test_a_job_alone_runs_again_where_other_programs_fill_the_gpu_but_not_forever(
    n_times, n_free, n_own, kind, n_tries, job, tmp_path, monkeypatch
):
    monkeypatch.setattr(pool, "CROWDED_SECONDS", 0.3)
    monkeypatch.setattr(pool, "TICK", 0.1)
    work = job("fills", pool_works.fill_gpu, tmp_path / "tries", n_times, n_free, n_own)
    notes, start = [], time.monotonic()
    (ended,) = run_jobs([work], 1, notes.append, most_tries=3)
    assert (ended.failure and ended.failure.kind) == kind
    assert (tmp_path / "tries").read_text() == "." * n_tries
    said = [each.text for each in notes if isinstance(each, Note)]
    assert len(said) == n_tries - 1
    assert all("other programs" in each for each in said)
    assert time.monotonic() - start >= 0.3 * (n_tries - 1)
    assert kind != CROWDED_GPU or "Other processes" in ended.failure.message


def test_fewer_jobs_run_where_they_fill_the_gpu_and_one_more_after_each_success(job):
    room, work = Room(3, most_tries=1), job("any", pool_works.refuse)
    failed = [Ended(work, 1.0, failure=Failure(kind, "")) for kind in ("DataError", FULL_GPU)]
    found = []
    for ended, n_running in ((failed[1], 1), (failed[0], 1), (Ended(work, 1.0), 0)):
        reason = room.find_reason_to_repeat(ended, n_running)
        found.append((room.n_jobs, bool(reason)))
    assert found == [(1, True), (1, False), (2, False)]
    for _ in range(5):
        room.find_reason_to_repeat(Ended(work, 1.0), 1)
    assert room.n_jobs == 3
    assert not room.find_reason_to_repeat(failed[1], 0), "it fills the GPU alone"


@pytest.mark.parametrize(
    "message",
    [
        "CUDA out of memory. Tried to allocate 2 GiB.",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    ],
)
def test_a_full_gpu_is_known_by_what_torch_says(message):
    assert pool.describe_error(RuntimeError(message)).kind == FULL_GPU


def test_tries_beside_other_jobs_do_not_count(job):
    room, work = Room(2, most_tries=2), job("any", pool_works.refuse)
    crowded = Ended(work, 1.0, failure=Failure(CROWDED_GPU, ""))
    found = [bool(room.find_reason_to_repeat(crowded, n)) for n in (1, 1, 1, 0, 0)]
    assert found == [True, True, True, True, False]
    assert room.n_jobs == 1
    assert not room.is_open


def test_as_many_jobs_as_wanted_run_at_a_time_once_the_gpu_has_room_again(job, tmp_path):
    """Two jobs that wait for each other end only if they run at the same time."""
    first, second, told = (tmp_path / each for each in ("first", "second", "told"))
    jobs = [
        job("fills", pool_works.fill_gpu_once, tmp_path / "tried"),
        job("waits", pool_works.wait_for_file, told, limit=60),
        job("meets", pool_works.meet, first, second, limit=60, after=("fills", "waits")),
        job("is met", pool_works.meet, second, first, limit=60, after=("fills", "waits")),
    ]

    def listen(event):
        if isinstance(event, Note) and "at most 1 at a time" in event.text:
            told.touch()

    assert [each.failure for each in run_jobs(jobs, 2, listen)] == [None] * 4


def test_a_job_that_fills_the_gpu_alone_fails(job, tmp_path):
    (ended,) = run_jobs([job("fills", pool_works.fill_gpu_once, tmp_path / "tried")], 2)
    assert ended.failure.kind == FULL_GPU
    assert "memory is too small" in ended.failure.message
