"""Speed of training on several processes of a CPU, beside one process.

    python benchmarks/several_devices.py [--turns 3] [--documents 1024] [--out FILE.json]

It trains set-rnn with its default sizes on a cut of newsroom, in batches of 128 documents. The
ways take turns, and each turn is a new process. The table has medians of the epochs after the
first:

    documents/s      in training, without measuring; depends on what else the machine does
    CPU ms/document  of the first process: on cores of its own it would take no less time
    measuring        the share of the time of an epoch that goes into measuring on valid

The speed-up is given twice: by documents/s, and by the CPU time of the first process, which other
programs hardly change.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

SETTINGS = ["vectors.source=none", "model.wide=off", "training.batch_size=128"]
SETTINGS += ["training.epochs=3"]
N_VALID = 128
WAYS = {"1 process": (1, 1), "2 threads": (1, 2), "2 processes": (2, 1)}  # processes, threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--documents", type=int, default=1024)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--way", help=argparse.SUPPRESS)  # inside a turn
    chosen = parser.parse_args()
    if chosen.way:
        print(json.dumps(measure(WAYS[chosen.way][0], chosen.documents)))
        return
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(chosen.turns):
        for way in WAYS:
            found[way].append(run(way, chosen.documents))
            print(way, found[way][-1], file=sys.stderr)
    table = {
        way: {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
        for way, turns in found.items()
    }
    alone = table["1 process"]
    for way, row in table.items():
        row["speed_up"] = row["documents_per_second"] / alone["documents_per_second"]
        row["speed_up_by_cpu_time"] = alone["cpu_ms"] / row["cpu_ms"]
        print(f"{way:12}  " + "  ".join(f"{name} {each:.3g}" for name, each in row.items()))
    if chosen.out:
        load = os.getloadavg()[0]
        content = {"load": load, "cores": os.cpu_count(), "medians": table, "turns": found}
        chosen.out.write_text(json.dumps(content, indent=1) + "\n")


def run(way: str, n_documents: int) -> dict[str, float]:
    """Measure in a new process."""
    command = [sys.executable, __file__, "--way", way, "--documents", str(n_documents)]
    variables = {**os.environ, "OMP_NUM_THREADS": str(WAYS[way][1])}
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True)
    values: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return values


def measure(n_processes: int, n_documents: int) -> dict[str, float]:
    from setrnn.methods import find_method
    from setrnn.plain_settings import load_config
    from setrnn.training.start import TrainOptions, train_system

    times: list[tuple[str, float, float]] = []  # what ends, when, after how much CPU time

    def watch(event: Any) -> None:  # noqa: ANN401
        epoch = getattr(event, "epoch", None)
        if epoch is not None:
            kind = "end" if epoch.scores is not None else epoch.activity
            times.append((kind, time.perf_counter(), time.process_time()))

    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare_cut(Path(folder) / "cut", n_documents)
        options = TrainOptions("cpu", on_progress=watch, n_devices=n_processes)
        config = load_config("default", None, SETTINGS)
        trained = train_system(find_method("set-rnn"), prepared, config, options)
    ends = [number for number, (kind, *_) in enumerate(times) if kind == "end"]
    training, cpu, measuring = [], [], []
    for before, end in pairwise(ends):  # without the first epoch
        last = max(n for n in range(before, end) if times[n][0] not in ("end", "measuring"))
        training.append(times[last][1] - times[before][1])
        cpu.append(times[last][2] - times[before][2])
        measuring.append(times[end][1] - times[last][1])
    speeds = [row["documents_per_second"] for row in trained.notes["epochs"][1:]]
    return {
        "documents_per_second": statistics.median(speeds),
        "cpu_ms": 1e3 * statistics.median(cpu) / n_documents,
        "measuring": sum(measuring) / (sum(measuring) + sum(training)),
    }


def prepare_cut(folder: Path, n_documents: int) -> Any:  # noqa: ANN401
    from setrnn.config import TextSettings
    from setrnn.data import newsroom
    from setrnn.data.preparing import prepare

    sizes = {"train": n_documents, "valid": N_VALID}
    examples = {name: list(islice(newsroom.examples(name), n)) for name, n in sizes.items()}
    streams = {name: partial(iter, each) for name, each in examples.items()}
    return prepare(streams, folder, "newsroom", TextSettings(), {"synthetic": True})


if __name__ == "__main__":
    main()
