"""Workers on a Ray cluster of this machine: a death loses nothing, and errors are one line."""

import json
import os
import signal
from pathlib import Path

import pytest

import setrnn
from setrnn.data import newsroom
from setrnn.errors import ConfigError
from setrnn.progress import Progress
from setrnn.scale.ray_workers import connect

ray = pytest.importorskip("ray")


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    yield setrnn.Crew(workers=1, ray="local")
    ray.shutdown()


def find_actor():
    """Return the process of the worker; None if there is none now."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if (folder / "cmdline").read_bytes().startswith(b"ray::_Actor"):
                    return int(folder.name)
            except OSError:
                continue
    return None


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(taggers, tmp_path, cluster):
    taggers["br"].save(tmp_path / "model")
    killed = []

    def kill_one(event):
        if isinstance(event, Progress) and event.activity == "tagging" and event.n_done > 100:
            actor = None if killed else find_actor()
            if actor:
                killed.append(actor)
                os.kill(actor, signal.SIGKILL)

    done = setrnn.predict_files(
        tmp_path / "model",
        "newsroom",
        tmp_path / "tags",
        shard_rows=100,
        crew=cluster,
        on_progress=kill_one,
    )
    assert len(killed) == 1
    texts = [each.text for each in newsroom.examples("test")]
    rows = [
        json.loads(line)["labels"]
        for each in done.files
        for line in (tmp_path / "tags" / each).read_text(encoding="utf-8").splitlines()
    ]
    assert rows == [list(each.labels) for each in taggers["br"].tag(texts)]


def test_no_cluster_is_said_at_once():
    with pytest.raises(ConfigError, match="No Ray cluster"):
        connect("127.0.0.1:1")
