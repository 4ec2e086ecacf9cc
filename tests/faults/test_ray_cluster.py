"""Workers on a Ray cluster of this machine: a death loses nothing."""

import json

import pytest

import setrnn
from setrnn.data import newsroom
from setrnn.scale.ray_workers import RayWorkers

ray = pytest.importorskip("ray")


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    yield setrnn.Crew(workers=1, ray="local")
    ray.shutdown()


def test_a_worker_that_is_killed_is_replaced(taggers, tmp_path, cluster, monkeypatch):
    taggers["br"].save(tmp_path / "model")
    tasks, submit = [], RayWorkers.submit

    def submit_and_kill(self, task):
        submit(self, task)
        tasks.append(task)
        if len(tasks) == 3:
            ray.kill(self._actors[0].handle)

    monkeypatch.setattr(RayWorkers, "submit", submit_and_kill)
    done = setrnn.predict_files(
        tmp_path / "model",
        "newsroom",
        tmp_path / "tags",
        shard_rows=100,
        crew=cluster,
    )
    assert len(tasks) == len(done.files) + 1
    documents = [(each.text, each.features) for each in newsroom.examples("test")]
    rows = [
        json.loads(line)["labels"]
        for each in done.files
        for line in (tmp_path / "tags" / each).read_text(encoding="utf-8").splitlines()
    ]
    assert rows == [list(each.labels) for each in taggers["br"].tag_stream(documents)]


def test_preparing_on_a_cluster_makes_the_same_bytes(tmp_path, cluster, monkeypatch):
    """A worker is killed in each pass."""
    rows = [
        json.dumps({"text": each.text, "labels": each.labels}) for each in newsroom.examples("test")
    ]
    for number in range(4):
        part = "\n".join(rows[number::4])
        (tmp_path / f"{number}.jsonl").write_text(part, encoding="utf-8")
    tasks, submit = [], RayWorkers.submit

    def submit_and_kill(self, task):
        submit(self, task)
        tasks.append(task)
        if len(tasks) in (2, 7, 12):
            ray.kill(self._actors[0].handle)

    monkeypatch.setattr(RayWorkers, "submit", submit_and_kill)
    folders = [
        setrnn.prepare(str(tmp_path / "*.jsonl"), out=tmp_path / name, **crew).folder
        for name, crew in (("alone", {}), ("ray", {"workers": 1, "ray": cluster.ray}))
    ]
    alone, on_ray = [
        {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in folders
    ]
    assert on_ray == alone
    assert len(tasks) == 3 * 4 + 3  # labels, words, ids
