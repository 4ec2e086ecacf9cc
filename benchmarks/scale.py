"""Tag many documents by several workers: speed, and what kills do to the output.

    python benchmarks/scale.py MODEL [--documents N] [--chunk-rows N] [--kills N] [--ray]
    python benchmarks/scale.py --network set-rnn-exact [...]

With --network, the model is a small network of this method, trained on the newsroom first.
Documents are those of the newsroom, each with another number at its end. Measured, in one run:

1. one worker and two, as processes of this machine; with --ray also on a simulated cluster of three
   nodes (one without CPUs, and two with one CPU each);
2. with --kills N, the same again while a random worker, the driver and, with --ray, a node are
   killed with SIGKILL at random moments, N times each; the driver is started again with the same
   command until it ends. The output must be complete, without duplicates, and have the rows of the
   run that nothing disturbed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

COLUMNS = ["id", "labels", "probability"]
SMALL = ("model.encoder_units=32", "model.decoder_units=32", "vectors.dimensions=32")
SMALL += ("vectors.source=none", "training.epochs=3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--network", metavar="METHOD")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--chunk-rows", type=int, default=5_000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    if (chosen.model is None) == (chosen.network is None):
        parser.error("give a MODEL, or --network METHOD")
    with tempfile.TemporaryDirectory() as name:
        if chosen.network:
            chosen.model = train_network(chosen.network, Path(name) / "model")
        found = measure(chosen, Path(name))
    print(json.dumps(found, indent=2))
    if chosen.out:
        chosen.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def train_network(method: str, out: Path) -> str:
    """Train a small network, and return its folder."""
    command = [sys.executable, "-m", "setrnn", "train", "newsroom", "--method", method]
    command += ["--out", str(out), *(f"--set={each}" for each in SMALL)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return str(out)


def measure(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    data = folder / "data.parquet"
    write_documents(data, chosen.documents)
    run = Run(chosen, data, folder)
    found: dict[str, Any] = {"model": chosen.network or chosen.model}
    found |= {"documents": chosen.documents, "chunk_rows": chosen.chunk_rows}
    alone = run.undisturbed("one", ["--workers", "1"])
    two = run.undisturbed("two", ["--workers", "2"])
    found |= {"one_worker_seconds": alone["seconds"], "two_workers_seconds": two["seconds"]}
    found["speed_up"] = alone["seconds"] / two["seconds"]
    same = [two["hash"] == alone["hash"]]
    if chosen.kills:
        disturbed = run.disturbed("killed", ["--workers", "2"], ["worker", "driver"])
        same.append(disturbed.pop("hash") == alone["hash"])
        found["processes_killed"] = disturbed
    if chosen.ray:
        with SimulatedCluster() as cluster:
            on_ray = run.undisturbed("ray", ["--ray", cluster.address, "--workers", "2"])
            found["ray_seconds"] = on_ray["seconds"]
            found["ray_overhead"] = on_ray["seconds"] / two["seconds"] - 1
            same.append(on_ray["hash"] == alone["hash"])
            if chosen.kills:
                arguments = ["--ray", cluster.address, "--workers", "2"]
                kinds = ["worker", "driver", "node"]
                disturbed = run.disturbed("ray-killed", arguments, kinds, cluster)
                same.append(disturbed.pop("hash") == alone["hash"])
                found["ray_killed"] = disturbed
    found["all_outputs_equal"] = all(same)
    return found


def write_documents(path: Path, n_documents: int) -> None:
    from setrnn.data import newsroom

    texts = enumerate(islice(cycle(each.text for each in newsroom.examples("train")), n_documents))
    rows = [{"id": str(number), "text": f"{text} Item {number}."} for number, text in texts]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


class Run:
    """Runs of `setrnn predict --out FOLDER/` on the same data."""

    def __init__(self, chosen: argparse.Namespace, data: Path, folder: Path) -> None:
        self.chosen, self.data, self.folder = chosen, data, folder
        self.random = random.Random(chosen.seed)

    def start(self, out: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
        """Start a driver."""
        command = [sys.executable, "-m", "setrnn", "predict", self.chosen.model, str(self.data)]
        command += ["--out", f"{out}/", "--chunk-rows", str(self.chosen.chunk_rows), *arguments]
        command += ["--format-out", "parquet"] if "--ray" not in arguments else []
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def undisturbed(self, name: str, arguments: list[str]) -> dict[str, Any]:
        """Time a run that nothing disturbs."""
        out = self.folder / name
        start = time.monotonic()
        if self.start(out, arguments).wait():
            raise SystemExit(f"{name} failed")
        seconds = time.monotonic() - start
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)
        return {"seconds": seconds, "hash": hash_output(out, self.chosen.documents)}

    def disturbed(
        self,
        name: str,
        arguments: list[str],
        kinds: list[str],
        cluster: SimulatedCluster | None = None,
    ) -> dict[str, Any]:
        """Kill what is of these kinds while it runs, and start it again until it ends."""
        out = self.folder / name
        left = [kind for kind in kinds for _ in range(self.chosen.kills)]
        self.random.shuffle(left)
        killed: dict[str, int] = dict.fromkeys(kinds, 0)
        n_starts, start = 0, time.monotonic()
        while True:
            n_starts += 1
            driver = self.start(out, arguments)
            code = self._disturb(driver, out, left, killed, cluster)
            if code == 0:
                if left:  # it was too quick for all kills: once more, from the beginning
                    print(f"{name}: once more, {len(left)} kills left", file=sys.stderr, flush=True)
                    hash_output(out, self.chosen.documents)
                    shutil.rmtree(out)
                    continue
                break
            if code != -signal.SIGKILL:
                raise SystemExit(f"{name} ended with {code}")
        seconds = time.monotonic() - start
        print(f"{name}: {seconds:.1f} s, {killed}", file=sys.stderr, flush=True)
        found = hash_output(out, self.chosen.documents)
        return {"seconds": seconds, "killed": killed, "driver_starts": n_starts, "hash": found}

    def _disturb(
        self,
        driver: subprocess.Popen[bytes],
        out: Path,
        left: list[str],
        killed: dict[str, int],
        cluster: SimulatedCluster | None,
    ) -> int:
        while True:
            try:
                pause = self.random.uniform(3, 12)
                return driver.wait(pause)
            except subprocess.TimeoutExpired:
                pass
            if not left:
                continue
            kind = left.pop()
            if kind == "driver":
                driver.kill()
            elif kind == "node":
                assert cluster is not None
                cluster.kill_a_node(self.random)
            else:
                workers = find_workers(driver.pid, cluster is not None)
                if not workers:
                    left.insert(0, kind)
                    continue
                os.kill(self.random.choice(workers), signal.SIGKILL)
            killed[kind] += 1


def find_workers(driver: int, on_ray: bool) -> list[int]:
    """Return the processes that hold a model."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if (on_ray and line.startswith(b"ray::_Actor")) or (
            not on_ray and parent == driver and b"spawn_main" in line
        ):
            found.append(int(folder.name))
    return found


def hash_output(out: Path, n_documents: int) -> str:
    """Check that each document is there once; return the hash of the rows in order."""
    rows = [
        (int(row["id"]), row["labels"], round(row["probability"], 5))
        for file in out.rglob("*.parquet")
        if file.parent.name != "checkpoint"
        for row in pyarrow.parquet.read_table(file, columns=COLUMNS).to_pylist()
    ]
    rows.sort()
    assert [row[0] for row in rows] == list(range(n_documents)), "rows are lost or repeated"
    return hashlib.blake2b(json.dumps(rows).encode()).hexdigest()


class SimulatedCluster:
    """Three Ray nodes on this machine; the head has no CPU for workers."""

    def __enter__(self) -> SimulatedCluster:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "object_store_memory": 2**27, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.add() for _ in range(2)]
        self.address = self.cluster.address
        return self

    def add(self) -> Any:  # noqa: ANN401 (Ray has no types)
        """Add a node with one CPU."""
        return self.cluster.add_node(num_cpus=1, object_store_memory=2**27)

    def kill_a_node(self, chance: random.Random) -> None:
        """Kill a node at random, and add another."""
        node = chance.choice(self.nodes)
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes[self.nodes.index(node)] = self.add()

    def __exit__(self, *_: object) -> None:
        self.cluster.shutdown()


if __name__ == "__main__":
    main()
