"""Jobs on a Ray cluster, here a cluster in this process whose workers are lost on demand."""

import sys
from functools import partial
from types import SimpleNamespace

import pytest

import setrnn
from setrnn.errors import ConfigError
from setrnn.progress import Note, Progress
from setrnn.scale import ray_jobs
from setrnn.scale.ray_jobs import MOST_LOSSES, run_jobs_on_ray
from setrnn.scale.ray_workers import count_room
from setrnn.training.pool import Ended, Job, describe_error


class RayError(Exception):
    pass


class FakeActor:
    """An actor that answers at once; a call that its worker does not survive raises."""

    def __init__(self, cluster, made):
        self.cluster, self.made = cluster, made
        for name in ("do", "progress", "stop"):
            setattr(self, name, SimpleNamespace(remote=partial(self._call, name)))

    def _call(self, name, *arguments):
        self.cluster.calls.append(name)
        if name == "do" and self.cluster.hangs:
            return SimpleNamespace(is_ready=False)
        if name == "do" and self.cluster.n_losses:
            self.cluster.n_losses -= 1
            return SimpleNamespace(is_ready=True, error=RayError("the node died"))
        return SimpleNamespace(is_ready=True, value=getattr(self.made, name)(*arguments))


class FakeRay:
    """As much of Ray as the jobs use."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self, n_losses=0, hangs=False, **resources):
        self.n_losses, self.hangs, self.resources = n_losses, hangs, resources
        self.calls, self.n_killed = [], 0

    def cluster_resources(self):
        return self.resources

    def remote(self, made):
        options = SimpleNamespace(remote=lambda: FakeActor(self, made()))
        return SimpleNamespace(options=lambda **given: options)

    def wait(self, references, num_returns=1, timeout=None):
        return [each for each in references if each.is_ready], []

    def get(self, reference):
        if hasattr(reference, "error"):
            raise reference.error
        return reference.value

    def kill(self, actor):
        self.n_killed += 1


@pytest.fixture
def cluster(monkeypatch):
    def make(**options):
        made = FakeRay(**options)
        monkeypatch.setitem(sys.modules, "ray", made)
        return made

    def run_here(jobs, n_jobs, on_progress):
        (job,) = jobs
        try:
            yield Ended(job, 1.0, job.work(on_progress))
        except Exception as error:  # noqa: BLE001 (as the pool does)
            yield Ended(job, 1.0, failure=describe_error(error))

    monkeypatch.setattr(ray_jobs, "run_jobs", run_here)
    monkeypatch.setattr(ray_jobs, "TICK", 0.0)
    return make


def double(number, on_progress):
    on_progress(Progress("training", 0.5, 1.0))
    return 2 * number


def fail(on_progress):
    raise ValueError("nothing to learn")


@pytest.fixture
def jobs(tmp_path):
    log = tmp_path / "runs" / "log"
    return [Job(f"job-{n}", partial(double, n), log) for n in range(3)]


def test_each_job_ends_with_its_value(cluster, jobs):
    made = cluster()
    ended = list(run_jobs_on_ray(jobs))
    assert [(each.job, each.value) for each in ended] == [
        (job, 2 * n) for n, job in enumerate(jobs)
    ]
    assert made.n_killed == 3  # a worker that has ended leaves its place to others


def test_a_job_that_raises_fails_alone(cluster, jobs):
    cluster()
    jobs[1] = Job("fails", fail, jobs[1].log)
    ended = {each.job.name: each for each in run_jobs_on_ray(jobs, n_jobs=1)}
    assert "nothing to learn" in ended["fails"].failure.message
    assert ended["job-2"].value == 4


def test_a_job_whose_worker_is_lost_is_given_to_another(cluster, jobs):
    cluster(n_losses=MOST_LOSSES - 1)
    notes = []
    (ended,) = run_jobs_on_ray(jobs[2:], on_progress=notes.append)
    assert ended.value == 4
    assert sum(isinstance(each, Note) and "resumes" in each.text for each in notes) == 4


def test_a_job_whose_workers_are_always_lost_is_given_up(cluster, jobs):
    cluster(n_losses=MOST_LOSSES)
    lost, *others = run_jobs_on_ray(jobs, n_jobs=1)
    assert "lost" in lost.failure.message
    assert [each.value for each in others] == [2, 4]


def test_a_folder_that_a_worker_does_not_see_is_named(cluster, jobs, monkeypatch):
    cluster()
    monkeypatch.setattr("pathlib.Path.mkdir", lambda *_, **__: None)  # made on another machine
    with pytest.raises(ConfigError, match=r"does not see .*runs"):
        list(run_jobs_on_ray(jobs))


def test_another_version_on_a_worker_is_named(cluster, jobs, monkeypatch):
    made, real = cluster(), ray_jobs._Actor.do
    monkeypatch.setattr(ray_jobs._Actor, "do", lambda self, job, _: real(self, job, "0.0.1"))
    with pytest.raises(ConfigError, match=rf"setrnn {setrnn.__version__} instead of 0\.0\.1"):
        list(run_jobs_on_ray(jobs))
    assert made.n_killed


def test_closing_asks_running_jobs_to_stop(cluster, jobs):
    made = cluster(hangs=True)
    running = run_jobs_on_ray(jobs, on_progress=lambda event: None)
    waits = iter([0.0, 0.0, KeyboardInterrupt()])

    def wait(references, num_returns=1, timeout=None):
        if num_returns == 1 and timeout == 0.0 and len(references) == 3:
            step = next(waits)
            if isinstance(step, KeyboardInterrupt):
                raise step
        return [each for each in references if each.is_ready], []

    made.wait = wait
    jobs[0].log.parent.mkdir()
    jobs[0].log.write_text("ended by a signal")
    with pytest.raises(KeyboardInterrupt):
        next(running)
    assert made.calls.count("stop") == 3
    assert made.n_killed == 3
    assert not jobs[0].log.exists()  # only runs that failed have one


@pytest.mark.parametrize(
    ("resources", "gpus", "n"),
    [
        ({"CPU": 4.0}, 0.0, 4),
        ({"CPU": 4.0, "GPU": 2.0}, 1.0, 2),
        ({"CPU": 6.0, "GPU": 1.0}, 0.25, 4),
    ],
)
def test_the_room_is_that_of_cores_and_gpus(cluster, resources, gpus, n):
    cluster(**resources)
    assert count_room(gpus) == n


def test_a_cluster_without_a_gpu_has_no_room_for_runs_on_one(cluster):
    cluster(CPU=4.0)
    with pytest.raises(ConfigError, match="GPU"):
        count_room(0.25)
