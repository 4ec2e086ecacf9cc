"""Speed beside another busy program: training, predict, evaluate, compare and serve.

    python benchmarks/busy_neighbour.py DATA [--works training,predict] [--turns 3]

DATA is a folder with train and valid files, such as debtags; a cut of it is used. Two cores: the
first is free, on the second the benchmark starts a program that is always busy, and ends it. Each
turn is a new process, and the ways take turns. The table has medians of documents per second:

    free core     OMP_NUM_THREADS=1, pinned to the free core, beside the neighbour
    neighbour     as a user runs it, both cores, no variable set, beside the neighbour
    spinning      the same, with threads that wait as torch's do by default; takes long, and is only
                  measured if --ways names it
    1 thread, 2 threads (spinning), default       without the neighbour

Goals: `neighbour` at least 60% of `free core`; `default` at least 95% of the better of one and two
threads. The last three columns need quiet cores: the last row of each kind of work has the cores
that other programs used. --wait N waits up to N seconds before each such turn until the cores are
quiet. Documents per second of CPU time show what waiting costs, on busy machines too.
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
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

N_TRAIN, N_VALID, N_PREDICT, N_COMPARED = 384, 64, 640, 256
SETTINGS = ["vectors.source=none", "training.epochs=2", "training.valid_documents=16"]
SETTINGS += ["training.batch_size=128", "model.wide=off"]
PREDICTING_SECONDS, LOAD_SECONDS, N_CLIENTS, N_TEXTS = 5.0, 5.0, 4, 16
QUIET = 0.1  # cores that other programs may use
VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "MKL_NUM_THREADS")
SPINNING = {"GOMP_SPINCOUNT": "300000"}  # the default of GNU OpenMP, given as the user's choice


Measured = tuple[int, float, float]  # documents, seconds, seconds of CPU time


@dataclass(frozen=True)
class Way:
    """How a process is started."""

    variables: dict[str, str]
    n_cores: int = 2
    beside_neighbour: bool = False


WAYS = {
    "free core": Way({"OMP_NUM_THREADS": "1"}, 1, beside_neighbour=True),
    "neighbour": Way({}, beside_neighbour=True),
    "spinning": Way(SPINNING, beside_neighbour=True),
    "1 thread": Way({"OMP_NUM_THREADS": "1"}),
    "2 threads": Way({"OMP_NUM_THREADS": "2"} | SPINNING),
    "default": Way({}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--ways", default=",".join(each for each in WAYS if each != "spinning"))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--wait", type=float, default=0.0)
    parser.add_argument("--work", help=argparse.SUPPRESS)  # inside a turn
    wanted = parser.parse_args()
    if wanted.work:
        print(json.dumps(WORKS[wanted.work](wanted.data)))
        return
    cores = sorted(os.sched_getaffinity(0))[:2]
    with tempfile.TemporaryDirectory() as place:
        cut = Path(place)
        make_cut(wanted.data, cut)
        print(f"| documents/s | {' | '.join(WAYS)} | neighbour / free core | default / best |")
        print("|---" * (len(WAYS) + 3) + "|", flush=True)
        for work in wanted.works.split(","):
            turns = defaultdict(list)
            for _ in range(wanted.turns):
                for name in wanted.ways.split(","):
                    if wanted.wait and not WAYS[name].beside_neighbour:
                        wait_for_quiet_cores(wanted.wait)
                    turn = take_turn(work, cut, WAYS[name], cores)
                    turns[name].append(turn)
                    print(f"{work}, {name}: {' '.join(f'{each:.2f}' for each in turn)}",
                          file=sys.stderr, flush=True)  # fmt: skip
            print_rows(work, turns)


def print_rows(work: str, turns: dict[str, list[tuple[float, float, float]]]) -> None:
    """Print medians: the speed, the speed per core used, and the cores that others used."""
    rows = (work, "... per second of CPU time", "cores used by other programs")
    for number, title in enumerate(rows):
        found = {
            name: statistics.median(turn[number] for turn in turns[name]) if name in turns else 0.0
            for name in WAYS
        }
        best = max(found["1 thread"], found["2 threads"])
        ratios = [
            f"{found['neighbour'] / found['free core']:.0%}" if found["free core"] else "-",
            f"{found['default'] / best:.0%}" if best else "-",
        ]
        values = [f"{each:,.1f}" if name in turns else "-" for name, each in found.items()]
        if number == len(rows) - 1:
            ratios = ["", ""]
        print(f"| {title} | {' | '.join([*values, *ratios])} |", flush=True)


def make_cut(data: Path, cut: Path) -> None:
    """Write some documents of each part, and train the model that predicts."""
    from setrnn import open_dataset, train
    from setrnn.data.formats import BadRows

    parts = open_dataset(data).splits
    for part, n, name in (
        ("train", N_TRAIN, "train"),
        ("valid", N_VALID, "valid"),
        ("valid", N_PREDICT, "predict"),
    ):
        rows = [
            json.dumps({"id": each.id, "text": each.text, "labels": list(each.labels)}) + "\n"
            for each in islice(parts[part].read(BadRows()), n)
        ]
        (cut / f"{name}.jsonl").write_text("".join(rows))
        compared = {"train": "train", "valid": "valid", "predict": "test"}[name]
        (cut / "compared").mkdir(exist_ok=True)
        (cut / "compared" / f"{compared}.jsonl").write_text("".join(rows[:N_COMPARED]))
    train(cut / "train.jsonl", "set-rnn-exact", valid=cut / "valid.jsonl", settings=SETTINGS,
          out=cut / "model")  # fmt: skip


def take_turn(work: str, cut: Path, way: Way, cores: list[int]) -> tuple[float, float, float]:
    """Measure one kind of work in a new process.

    Returns documents/s, documents per second of CPU time, and the cores that others used.
    """
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, __file__, str(cut), "--work", work]
    own = set(cores[: way.n_cores])
    with neighbour(cores[1]) if way.beside_neighbour else no_neighbour():
        busy, start = busy_seconds(), time.perf_counter()
        used = os.times()
        found = subprocess.run(
            command,
            env=kept | way.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, own),
        )
        seconds, busy = time.perf_counter() - start, busy_seconds() - busy
    now = os.times()
    busy -= now.children_user + now.children_system - used.children_user - used.children_system
    # the CPU time of the neighbour, which has ended here, is among the children's
    n_documents, own_seconds, cpu = json.loads(found.stdout.splitlines()[-1])
    return n_documents / own_seconds, n_documents / cpu, max(busy / seconds, 0.0)


@contextmanager
def neighbour(core: int) -> Iterator[None]:
    """Keep one core busy."""
    endless = (  # ends with this process, however that ends
        f"import os\nos.sched_setaffinity(0, {{{core}}})\n"
        f"while os.getppid() == {os.getpid()}:\n for _ in range(1_000_000): pass"
    )
    process = subprocess.Popen([sys.executable, "-c", endless])
    time.sleep(0.3)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def no_neighbour() -> Iterator[None]:
    yield


def busy_seconds() -> float:
    """Return the CPU time of all programs on all cores so far."""
    values = [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(values) - values[3] - values[4]) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet_cores(most: float) -> None:
    """Wait until other programs use almost no core for a second."""
    end = time.perf_counter() + most
    while time.perf_counter() < end:
        before = busy_seconds()
        time.sleep(1)
        if busy_seconds() - before <= QUIET:
            return


def measure_training(cut: Path) -> Measured:
    """Train for two epochs, and measure the second."""
    from setrnn import train
    from setrnn.progress import Note, Progress

    moments = []

    def watch(event: Progress | Note) -> None:
        epoch = event.epoch if isinstance(event, Progress) else None
        if epoch is None:
            return
        has_begun = epoch.number == 1 and epoch.scores is not None
        if has_begun or (epoch.number == 2 and epoch.activity != "measuring"):
            moments.append((time.perf_counter(), time.process_time()))

    train(cut / "train.jsonl", "set-rnn-exact", valid=cut / "valid.jsonl", settings=SETTINGS,
          on_progress=watch)  # fmt: skip
    first, last = moments[0], moments[-2]  # the last one is at the end of measuring
    return N_TRAIN, last[0] - first[0], last[1] - first[1]


def measure_predict(cut: Path) -> Measured:
    """Tag documents as `setrnn predict` does, after some that are not counted."""
    from setrnn import load

    tagger = load(cut / "model")
    documents = [(text, ()) for text in read_texts(cut)]
    list(tagger.tag_stream(documents[:128]))
    n_documents, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < PREDICTING_SECONDS:
        n_documents += len(list(tagger.tag_stream(documents)))
    return n_documents, time.perf_counter() - start, time.process_time() - cpu


def measure_evaluate(cut: Path) -> Measured:
    """Evaluate as `setrnn evaluate` does, after a turn that is not counted."""
    from setrnn import evaluate, load

    tagger = load(cut / "model")
    evaluate(tagger, cut / "valid.jsonl")
    start, cpu = time.perf_counter(), time.process_time()
    evaluate(tagger, cut / "predict.jsonl")
    return N_PREDICT, time.perf_counter() - start, time.process_time() - cpu


def measure_compare(cut: Path) -> Measured:
    """Run `setrnn compare --jobs 2`, start included; count the documents trained on."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "setrnn", "compare", str(cut / "compared")]
        command += ["--methods", "seq2seq-rnn,set-rnn-exact"]
        command += ["--jobs", "2", "--seeds", "1", "--out", f"{place}/out"]
        for each in SETTINGS:
            command += ["--set", each]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        used = os.times()
        cpu = used.children_user + used.children_system
        return 4 * N_COMPARED, time.perf_counter() - start, cpu


def measure_serve(cut: Path) -> Measured:
    """Put a small load on `setrnn serve`, from clients that share its cores."""
    from serve_load import Service, requests

    messages = requests(read_texts(cut), N_TEXTS, None)
    with Service(cut / "model") as service:
        service.loaded(messages, N_CLIENTS, N_TEXTS, 1.0)
        found = service.loaded(messages, N_CLIENTS, N_TEXTS, LOAD_SECONDS)
    return found.statuses[200] * N_TEXTS, found.seconds, found.cores * found.seconds


def read_texts(cut: Path) -> list[str]:
    lines = (cut / "predict.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


WORKS = {
    "training": measure_training,
    "predict": measure_predict,
    "evaluate": measure_evaluate,
    "compare": measure_compare,
    "serve": measure_serve,
}

if __name__ == "__main__":
    main()
