"""Kill a worker or a node of a Ray cluster: the runs of a comparison resume elsewhere."""

import json
import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from children import descendants
from commands import TINY

import setrnn

METHOD = "set-rnn-exact"
SETTINGS = ["vectors.source=none", *TINY[3:6], "training.epochs=15"]


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two nodes, of which only the second one has a core."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Where `--ray auto` of nobody else finds it; the paths of sockets must be short.
    os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    made.spare = made.add_node(num_cpus=1)
    ray.init(address=made.address, logging_level="ERROR", log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def learned(folder):
    """What a run has learned: its losses, scores and predictions, without times."""
    record = json.loads(
        (folder / "runs" / f"{METHOD}-0.json").read_text(),
        object_hook=lambda values: {name: values[name] for name in values if "second" not in name},
    )
    return {name: record[name] for name in ("epochs", "scores", "test")}


def kill_node(cluster):
    """Kill the only node with a core, and everything on it; another one takes its place."""
    lost, cluster.spare = cluster.spare, cluster.add_node(num_cpus=1)
    cluster.remove_node(lost, allow_graceful=False)


def kill_worker(cluster):
    """Kill the worker of the run; the run's own process notices, and ends."""
    workers = [
        pid for pid in descendants(os.getpid()) if command_of(pid).startswith("ray::_run_job")
    ]
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGKILL)


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.faults
@pytest.mark.parametrize("kill", [kill_worker, kill_node])
def test_a_run_resumes_elsewhere_with_the_same_bits(kill, cluster, small_prepared, tmp_path, tries):
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "out"
    setrnn.compare(small_prepared, [METHOD], out=undisturbed, seeds=1, settings=SETTINGS)
    options = {"seeds": 1, "settings": SETTINGS, "ray": cluster.address}
    with (
        tries(f"kill -9 of a Ray {kill.__name__[5:]}", "compare --ray") as found,
        ThreadPoolExecutor(1) as threads,  # a cluster gets new nodes in the main thread only
    ):
        compared = threads.submit(setrnn.compare, small_prepared, [METHOD], out=out, **options)
        # Ray says nothing of a run before its end: kill once an epoch has ended.
        struck = []
        while not (struck or compared.done()):
            struck = list(out.glob("runs/*.run/epochs.csv"))
            time.sleep(0.05)
        if struck:
            kill(cluster)
        compared.result()
        if struck:
            found.add([] if learned(out) == learned(undisturbed) else ["other results"], "epoch 2")
