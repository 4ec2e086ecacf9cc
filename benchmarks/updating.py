"""Compare `setrnn update` with training again, when documents and labels arrive later.

    python benchmarks/updating.py DATA --out DIR [--methods best set-rnn-exact] [--documents 4000]
        [--most-labels N] [--seeds 1] [--split test] [--set KEY=VALUE]... [--update KEY=VALUE]...
        [--ways before again update alone] [--json FILE]

DATA has train, valid and test. N of its training documents are used, and at most N / 5 of the other
parts; with --most-labels, none with larger sets (set-rnn-exact needs 2^n steps). Ten labels of
middle frequency arrive late: all documents that carry one of them, and random others, together a
tenth, are the new documents; the rest are the old ones. The valid part is cut in the same way. For
each method ("best" is training without a method, --budget 0) and each seed:

    before    trained on the old documents
    again     trained from scratch on all documents
    update    `before`, updated with the new documents and --data OLD
    alone     `before`, updated with the new documents only

All are measured on the same documents of --split: on all of them, and on those with and without a
late label. Times are of whole calls (reading, word vectors, training, calibration), with one job
and an empty cache, in one run; `share` is the processor time over that of training again, which
other work on the machine does not change (set OMP_NUM_THREADS=1). --set changes settings of
training, --update those of the updates. A run that is given again continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import setrnn
from setrnn.data.formats import BadRows, write_examples

BEST = "best"
N_LATE = 10
PARTS = ("old", "new", "all")
MEASURES = ("instance_f1", "label_f1", "micro_f1")


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=[BEST, "set-rnn-exact"])
    parser.add_argument("--documents", type=int, default=4_000)
    parser.add_argument("--most-labels", type=int, help="of a document; others are left out")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--update", action="append", default=[])
    parser.add_argument("--ways", nargs="+", default=["before", "again", "update", "alone"])
    parser.add_argument("--split", default="test")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(given)
    late = cut(arguments)
    rows = [
        row
        for method in arguments.methods
        for seed in range(arguments.seeds)
        for row in measure_method(arguments, method, seed, late)
    ]
    result = {"data": arguments.data, "late_labels": late, "rows": rows, "means": average(rows)}
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))
    print(json.dumps(result["means"], indent=1))


def cut(arguments: argparse.Namespace) -> list[str]:
    """Write old, new and all documents; return the labels that arrive late."""
    folder, n_documents = arguments.out / "data", arguments.documents
    if (folder / "late.json").is_file():
        return list(json.loads((folder / "late.json").read_text()))
    dataset = setrnn.open_dataset(arguments.data)
    read: dict[str, list[setrnn.Example]] = {}
    for name in ("train", "valid", "test"):
        examples = [
            each
            for each in dataset.splits[name].read(BadRows())
            if len(each.labels) <= (arguments.most_labels or len(each.labels))
        ]
        random.Random(0).shuffle(examples)
        read[name] = examples[: n_documents if name == "train" else n_documents // 5]
    late = choose_late(read["train"])
    for part in PARTS:
        (folder / part).mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid"):
        new = [each for each in read[name] if late & {*each.labels}]
        others = [each for each in read[name] if not late & {*each.labels}]
        n_more = max(len(read[name]) // 10 - len(new), 0)
        new, old = new + others[:n_more], others[n_more:]
        for part, examples in zip(PARTS, (old, new, old + new), strict=True):
            write_examples(examples, folder / part / f"{name}.jsonl")
    write_examples(read["test"], folder / "all" / "test.jsonl")
    (folder / "late.json").write_text(json.dumps(sorted(late)))
    return sorted(late)


def choose_late(train: list[setrnn.Example]) -> set[str]:
    """Choose labels in the middle of the list by frequency, in about a twentieth of documents."""
    counts = Counter(label for each in train for label in each.labels)
    ranked = [label for label, n in counts.most_common() if n >= N_LATE]
    most = len(train) / 20
    for first in range(len(ranked) // 3, len(ranked)):
        late = {*ranked[first : first + N_LATE]}
        if sum(bool(late & {*each.labels}) for each in train) <= most:
            return late
    return {*ranked[-N_LATE:]}


def measure_method(
    arguments: argparse.Namespace, method: str, seed: int, late: list[str]
) -> list[dict[str, Any]]:
    """Train and update one method; return a row for each way."""
    data, folder = arguments.out / "data", arguments.out / f"{method}-{seed}"
    before = folder / "before"

    def train(part: str) -> Callable[[Path], setrnn.Tagger]:
        return lambda out: setrnn.train(
            data / part,
            None if method == BEST else method,
            out=out,
            budget=0,
            seed=seed,
            settings=arguments.settings,
        )

    def update(old: Path | None) -> Callable[[Path], setrnn.Tagger]:
        return lambda out: setrnn.update(
            before, data / "new", data=old, out=out, settings=arguments.update
        )

    ways = {
        "before": train("old"),
        "again": train("all"),
        "update": update(data / "old"),
        "alone": update(None),
    }
    rows = []
    for way in arguments.ways:
        if way == "alone" and method in ("br", "br-support", "pcc"):
            continue
        row = {"method": method, "seed": seed, "way": way}
        row |= make(ways[way], folder / way, data / "all", arguments.split, {*late})
        rows.append(row)
        print(json.dumps(row), flush=True)
    seconds = {row["way"]: row["cpu_seconds"] for row in rows}
    for row in rows:
        if "again" in seconds:
            row["share"] = round(row["cpu_seconds"] / seconds["again"], 3)
    return rows


def make(
    work: Callable[[Path], setrnn.Tagger], out: Path, data: Path, split: str, late: set[str]
) -> dict[str, Any]:
    """Make a model, unless it is there, and measure it."""
    kept = out.with_name(f"{out.name}.json")
    if not kept.is_file():
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as cache:
            os.environ["SETRNN_CACHE"] = cache
            start, cpu_start = time.perf_counter(), time.process_time()
            work(out)
            times = {
                "seconds": round(time.perf_counter() - start, 1),
                "cpu_seconds": round(time.process_time() - cpu_start, 1),
            }
            kept.write_text(json.dumps(times))
    tagger = setrnn.load(out)
    examples = list(setrnn.open_dataset(data).splits[split].read(BadRows()))
    groups = {
        "all": examples,
        "late": [each for each in examples if late & {*each.labels}],
        "others": [each for each in examples if not late & {*each.labels}],
    }
    row: dict[str, Any] = json.loads(kept.read_text())
    for name, group in groups.items():
        scores = setrnn.evaluate(tagger, group).scores.as_dict()
        row[name] = {"n": len(group)} | {each: round(scores[each], 4) for each in MEASURES}
    return row


def average(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over seeds."""
    means = []
    for method, way in dict.fromkeys((row["method"], row["way"]) for row in rows):
        own = [row for row in rows if (row["method"], row["way"]) == (method, way)]
        mean: dict[str, Any] = {"method": method, "way": way, "seeds": len(own)}
        for key in ("seconds", "cpu_seconds", "share"):
            if key in own[0]:
                mean[key] = round(statistics.mean(row[key] for row in own), 3)
        for group in ("all", "late", "others"):
            for each in MEASURES:
                value = statistics.mean(row[group][each] for row in own)
                mean[f"{group} {each}"] = round(value, 4)
        means.append(mean)
    return means


if __name__ == "__main__":
    main()
