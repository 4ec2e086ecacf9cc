"""Time and memory with thousands of labels on a long tail.

    python benchmarks/many_labels.py make DATA --labels 5000 [--documents 50000]
    python benchmarks/many_labels.py measure DATA [--methods br-support br] [--gigabytes 8]
    python benchmarks/many_labels.py speed DATA [--method set-rnn-exact] [--set model.shortlist=0]
    python benchmarks/many_labels.py tree DATA        # needs libmultilabel

`make` writes synthetic documents in parts train, valid and test (80, 10, 10 percent). The frequency
of labels follows Zipf's law, with five labels per document on average; most of the labels of a
document are of one topic. Each label has some words of its own, which other labels share, and two
fifths of the words of a document are those of its labels.

`measure` runs the commands train, evaluate and predict for each method, each in its own process
with a limit on its memory, and prints a row of JSON: time, processor time, peak memory. Training
includes preparing the data, unless that is in the cache of a run before. Of a command that fails,
the last line is shown. `speed` trains a network on its first batches, for some seconds in one
thread, and lets it predict: documents per processor second. `tree` trains LibMultiLabel's tree of
labels on the tf-idf vectors of `br`, with its defaults. It predicts the labels above a threshold,
chosen on valid for instance-F1.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

MORE_LABELS = 6.2  # drawn per document; some are drawn twice, which leaves five labels
LABELS_PER_TOPIC = 50
OWN_WORDS = 8  # of a label
TOPICAL = 0.4  # of the words of a document
N_WORDS = (40, 120)  # of a document, without the ends
VOCABULARY = 40_000
PARTS = {"train": 0.8, "valid": 0.1, "test": 0.1}
SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]

Ints = npt.NDArray[np.int64]


def spell(number: int) -> str:
    """Return a made-up word; numbers of words are read as numbers, so they are spelled.

    Example:
        >>> spell(0), spell(71)
        ('bababa', 'bebaba')
    """
    n = len(SYLLABLES)
    return "".join(SYLLABLES[(number // n**place) % n] for place in range(3))


def draw_labels(n_documents: int, n_labels: int, random: np.random.Generator) -> list[Ints]:
    """Draw label sets: Zipf's law over all labels, most labels of a document from one topic."""
    weights = 1 / np.arange(1, n_labels + 1)
    cumulated = np.cumsum(weights / weights.sum())
    topic_of = random.permutation(n_labels) % -(-n_labels // LABELS_PER_TOPIC)
    members = [np.flatnonzero(topic_of == topic) for topic in range(topic_of.max() + 1)]
    shares = [np.cumsum(weights[each] / weights[each].sum()) for each in members]
    sets = []
    for _ in range(n_documents):
        first = int(np.searchsorted(cumulated, random.random()))
        n_more, topic = random.poisson(MORE_LABELS), int(topic_of[first])
        n_own = random.binomial(n_more, 0.7)
        own = members[topic][np.searchsorted(shares[topic], random.random(n_own))]
        others = np.searchsorted(cumulated, random.random(n_more - n_own))
        sets.append(np.unique(np.concatenate([[first], own, others])))
    return sets


def draw_words(labels: Ints, own_words: Ints, random: np.random.Generator) -> list[str]:
    """Draw the words of a document: some are of its labels, the others are common."""
    n_words = int(random.integers(*N_WORDS))
    n_topical = int(TOPICAL * n_words)
    spread = random.integers(0, OWN_WORDS, n_topical)
    topical = own_words[random.choice(labels, n_topical), spread]
    common = np.minimum(random.zipf(1.3, n_words - n_topical), VOCABULARY) - 1
    words = random.permutation(np.concatenate([topical, common]))
    return [spell(int(word)) for word in words]


def make_data(folder: Path, n_labels: int, n_documents: int, seed: int) -> None:
    """Write train.jsonl, valid.jsonl and test.jsonl."""
    random = np.random.default_rng(seed)
    own_words = random.integers(100, VOCABULARY, (n_labels, OWN_WORDS))
    sets = draw_labels(n_documents, n_labels, random)
    folder.mkdir(parents=True, exist_ok=True)
    start = 0
    for part, share in PARTS.items():
        end = start + round(share * n_documents)
        with (folder / f"{part}.jsonl").open("w", encoding="utf-8") as file:
            for labels in sets[start:end]:
                text = " ".join(draw_words(labels, own_words, random))
                row = {"text": text, "labels": [f"label-{label}" for label in labels]}
                file.write(json.dumps(row) + "\n")
        start = end


def run(arguments: list[str], gigabytes: float, seconds: float) -> dict[str, object]:
    """Run a command of setrnn in a process of its own; return its time and peak memory."""
    limit = int(gigabytes * 2**30)

    def set_limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        command = ["timeout", str(seconds), sys.executable, "-m", "setrnn", *arguments]
        process = subprocess.Popen(command, stdout=output, stderr=output, preexec_fn=set_limit)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = [line.strip() for line in output.read().splitlines() if line.strip()]
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "gigabytes": round(used.ru_maxrss / 2**20, 2),
        "exit": process.returncode,
        "notes": [line for line in lines if "not calibrated" in line or "memory" in line][:1],
        "failure": (lines or [""])[-1][:200] if process.returncode else "",
    }


def measure(arguments: argparse.Namespace) -> None:
    """Print a row per command."""
    data = arguments.data
    n_test = sum(1 for _ in (data / "test.jsonl").open(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if arguments.keep is None else arguments.keep
        folder.mkdir(parents=True, exist_ok=True)
        for method in arguments.methods:
            model, scores = str(folder / method), folder / f"{method}.json"
            settings = [part for each in arguments.set for part in ("--set", each)]
            train = ["train", str(data), "--method", method, "--out", model, *settings]
            commands = {
                "train": [*train, *arguments.train],
                "evaluate": ["evaluate", model, str(data), "--rule", "f1", "--json", str(scores)],
                "predict": ["predict", model, str(data / "test.jsonl"), "--out", f"{model}.jsonl"],
            }
            for name, command in commands.items():
                found = run(command, arguments.gigabytes, arguments.seconds)
                row: dict[str, object] = {"method": method, "command": name} | found
                if name == "predict" and not found["exit"]:
                    row["documents_per_second"] = round(n_test / float(str(found["seconds"])), 1)
                if name == "evaluate" and scores.exists():
                    values = json.loads(scores.read_text(encoding="utf-8"))
                    row["scores"] = _choose_scores(values)
                print(json.dumps(row), flush=True)
                if found["exit"]:
                    break


def measure_network(arguments: argparse.Namespace) -> None:
    """Print how many documents a network trains on and predicts per processor second."""
    import torch

    from setrnn.data.cache import Source, open_prepared
    from setrnn.methods import find_method
    from setrnn.model.network import Network
    from setrnn.plain_settings import load_config
    from setrnn.systems.registry import find_system
    from setrnn.training.schedule import fit_to_data
    from setrnn.training.speed import time_prediction
    from setrnn.training.start import TrainOptions, make_fabric, make_trainer

    torch.set_num_threads(1)
    config = load_config(overrides=["vectors.source=none", "model.wide=off", *arguments.set])
    prepared = open_prepared(Source(str(arguments.data)), config.text)
    config, method = fit_to_data(config, prepared), find_method(arguments.method)
    fabric = make_fabric(torch.device("cpu"), config.training.precision)
    trainer = make_trainer(method, prepared, config, TrainOptions(device="cpu"), fabric)

    def count(per_document: Callable[[], float]) -> float:
        start, start_cpu = time.perf_counter(), time.process_time()
        seconds = per_document()
        share = (time.process_time() - start_cpu) / (time.perf_counter() - start)
        return round(1 / (seconds * share), 1)

    row: dict[str, Any] = {"method": method.name, "labels": len(prepared.labels)}
    row["trained_per_second"] = count(lambda: trainer.time_steps(arguments.seconds))
    network: Network = trainer.network.eval()
    system = find_system(method)(network, config, fabric.device)
    row["predicted_per_second"] = count(lambda: time_prediction(system, prepared))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(row | {"gigabytes": round(memory, 2)}), flush=True)


def measure_tree(arguments: argparse.Namespace) -> None:
    """Print the measures of LibMultiLabel's tree."""
    from libmultilabel import linear

    from setrnn.config import ClassicalSettings, TextSettings
    from setrnn.data.cache import Source, open_prepared
    from setrnn.metrics import evaluate_ranking, evaluate_sets
    from setrnn.systems.classical.features import indicator
    from setrnn.systems.classical.system import make_training_data

    prepared = open_prepared(Source(str(arguments.data)), TextSettings())
    tfidf, data = make_training_data(prepared, ClassicalSettings())
    n_labels = data.n_labels
    start, start_cpu = time.perf_counter(), time.process_time()
    targets = indicator(data.label_sets, n_labels).astype(int)
    model = linear.train_tree(targets, data.features.astype(np.float64), verbose=False)
    row = {
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time() - start_cpu, 1),
    }
    values, truth = {}, {}
    for part in ("valid", "test"):
        split = prepared.split(part)
        start = time.perf_counter()
        features = tfidf.transform(split.tokens).astype(np.float64)
        values[part] = linear.predict_values(model, features).astype(np.float32)
        row["documents_per_second"] = round(len(split) / (time.perf_counter() - start), 1)
        truth[part] = indicator(split.labels, n_labels + len(prepared.unseen_labels))

    def score(part: str, threshold: float) -> dict[str, float | int | None]:
        is_in = values[part] >= threshold
        is_in = np.pad(is_in, ((0, 0), (0, truth[part].shape[1] - n_labels)))
        return evaluate_sets(truth[part], sp.csr_matrix(is_in.astype(np.float32))).as_dict()

    thresholds = np.arange(0.05, 1, 0.05)
    best = max(thresholds, key=lambda each: float(score("valid", each)["instance_f1"] or 0))
    found = score("test", best) | evaluate_ranking(truth["test"], values["test"]).as_dict()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    row |= {"gigabytes": round(memory, 2), "scores": _choose_scores(found)}
    print(json.dumps(row), flush=True)


def _choose_scores(values: dict[str, Any]) -> dict[str, float]:
    names = ("precision@", "ndcg@", "instance_f1", "micro_f1", "label_f1")
    return {key: round(each, 4) for key, each in values.items() if key.startswith(names)}


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("data", type=Path)
    making.add_argument("--labels", type=int, default=5_000)
    making.add_argument("--documents", type=int, default=50_000)
    making.add_argument("--seed", type=int, default=0)
    measuring = commands.add_parser("measure")
    measuring.add_argument("data", type=Path)
    measuring.add_argument("--methods", nargs="+", default=["br-support"])
    measuring.add_argument("--gigabytes", type=float, default=8, help="limit on address space")
    measuring.add_argument("--seconds", type=float, default=3_600, help="limit per command")
    measuring.add_argument("--set", nargs="+", default=[], help="settings, as of setrnn train")
    measuring.add_argument("--train", nargs="+", default=[], help="more arguments of setrnn train")
    measuring.add_argument("--keep", type=Path, help="where models and scores stay")
    timing = commands.add_parser("speed")
    timing.add_argument("data", type=Path)
    timing.add_argument("--method", default="set-rnn-exact")
    timing.add_argument("--seconds", type=float, default=20, help="of training")
    timing.add_argument("--set", nargs="+", default=[], help="settings, as of setrnn train")
    commands.add_parser("tree").add_argument("data", type=Path)
    arguments = parser.parse_args(given)
    if arguments.command == "make":
        make_data(arguments.data, arguments.labels, arguments.documents, arguments.seed)
    elif arguments.command == "speed":
        measure_network(arguments)
    elif arguments.command == "tree":
        measure_tree(arguments)
    else:
        measure(arguments)


if __name__ == "__main__":
    main()
