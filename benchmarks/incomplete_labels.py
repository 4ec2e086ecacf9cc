"""What unknown labels cost: half of the training labels hidden, and what is made of the rest.

    python benchmarks/incomplete_labels.py vectors DATA FILE.bin
    python benchmarks/incomplete_labels.py run DATA --out RESULTS.jsonl [--methods br br-support]
        [--seeds 3] [--documents N] [--measured N] [--vectors FILE.bin] [--device cpu]
        [--only WAY/ARM ...] [--set KEY=VALUE ...]
    python benchmarks/incomplete_labels.py table RESULTS.jsonl...

Three ways in which labels get lost; valid and test stay complete:

- checked: taggers forget each label with probability .5. A random quarter of the documents was
  checked and is complete; the others say `"complete": false`.
- unchecked: the same, but no document was checked.
- unasked: for each document, a random half of all labels was never asked for: `"unknown"` lists
  them, whether the document has them or not.

Arms: `absent` takes missing labels as absent (as if nothing was said), `neutral` counts them
neither for nor against (training.forgotten=1), `estimated` is the default, `half` is told the true
share (training.forgotten=0.5), `complete` trains on the checked quarter alone, `full` has all
labels. Each run is a process of its own and adds one line to RESULTS; the same command does
what is missing. `vectors` learns word vectors from the texts alone, for machines without gensim.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import setrnn
from setrnn.data.example import Example
from setrnn.data.formats import BadRows, open_dataset, write_folder

HIDDEN, CHECKED = 0.5, 0.25
# By the way in which labels get lost; None is that of the complete data.
ARMS: dict[str, tuple[str, ...]] = {
    "none": ("full",),
    "checked": ("absent", "neutral", "estimated", "half", "complete"),
    "unchecked": ("absent", "neutral", "half"),
    "unasked": ("absent", "neutral"),
}
SETTINGS = {"neutral": "training.forgotten=1", "half": "training.forgotten=0.5"}
RULES = {"instance_f1": "f1", "label_f1": "label-f1", "micro_f1": "micro-f1"}
MEASURES = (*RULES, "subset_accuracy", "set_log_likelihood", "mean_predicted_set_size")


def main(given: list[str] | None = None) -> None:
    """Run what is missing, or write the table of what is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    work = parser.add_subparsers(dest="work", required=True)
    vectors = work.add_parser("vectors")
    vectors.add_argument("data")
    vectors.add_argument("file", type=Path)
    runs = work.add_parser("run")
    runs.add_argument("data")
    runs.add_argument("--out", type=Path, required=True)
    runs.add_argument("--methods", nargs="+", default=["br", "br-support"])
    runs.add_argument("--seeds", type=int, default=3)
    runs.add_argument("--documents", type=int, help="of train; all if not given")
    runs.add_argument("--measured", type=int, help="of valid and of test; all if not given")
    runs.add_argument("--vectors", type=Path)
    runs.add_argument("--device", default="auto")
    runs.add_argument("--only", nargs="+", help="WAY/ARM, such as checked/neutral")
    runs.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    tables = work.add_parser("table")
    tables.add_argument("results", type=Path, nargs="+")
    arguments = parser.parse_args(given)
    if arguments.work == "vectors":
        write_vectors(arguments.data, arguments.file)
    elif arguments.work == "run":
        run_missing(arguments)
    else:
        print(format_table([row for file in arguments.results for row in read_results(file)]))


def hide(examples: list[Example], way: str, seed: int) -> list[Example]:
    """Return the documents with labels lost in some way."""
    if way == "none":
        return examples
    random = np.random.default_rng((seed, 20))
    names = sorted({label for example in examples for label in example.labels})
    hidden = []
    for example in examples:
        if way == "unasked":
            unasked = {
                name for name, u in zip(names, random.random(len(names)), strict=True) if u < HIDDEN
            }
            kept = tuple(label for label in example.labels if label not in unasked)
            hidden.append(replace(example, labels=kept, unknown=tuple(sorted(unasked))))
            continue
        is_checked = random.random() < CHECKED
        is_kept = random.random(len(example.labels)) >= HIDDEN
        if is_checked and way == "checked":
            hidden.append(example)
            continue
        pairs = zip(example.labels, is_kept, strict=True)
        kept = tuple(label for label, is_there in pairs if is_there)
        hidden.append(replace(example, labels=kept, complete=False))
    return hidden


def treat(examples: list[Example], arm: str) -> list[Example]:
    """Return the documents as an arm reads them."""
    if arm == "absent":
        return [replace(example, unknown=(), complete=True) for example in examples]
    if arm == "complete":
        return [example for example in examples if not example.is_incomplete]
    return examples


def run_missing(arguments: argparse.Namespace) -> None:
    """Do the runs that RESULTS lacks, each in a process of its own."""
    done = {_key(row) for row in read_results(arguments.out)}
    spawn = multiprocessing.get_context("spawn")
    for run in list_runs(arguments):
        if _key(run) in done:
            continue
        process = spawn.Process(target=do_run, args=(run, vars(arguments)))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"{run} failed.")


def list_runs(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield all runs, those of the first seed first."""
    for seed in range(arguments.seeds):
        for way, arms in ARMS.items():
            for arm in arms:
                if arguments.only is None or f"{way}/{arm}" in arguments.only:
                    for method in arguments.methods:
                        if method != "br-support" or can_find_sets(way, arm):
                            yield {"way": way, "arm": arm, "method": method, "seed": seed}


def can_find_sets(way: str, arm: str) -> bool:
    """Return whether some documents are complete: br-support predicts their label sets."""
    return way in ("none", "checked") or arm == "absent"


def do_run(run: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Train one model, measure it on valid and test, and add the record."""
    way, arm, method, seed = (run[name] for name in ("way", "arm", "method", "seed"))
    parts = read_parts(arguments["data"], arguments["documents"], arguments["measured"])
    parts["train"] = treat(hide(parts["train"], way, seed), arm)
    settings = [*arguments["settings"], *([SETTINGS[arm]] if arm in SETTINGS else [])]
    if arguments["vectors"] is not None:
        settings.append(f"vectors.source={arguments['vectors'].resolve()}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "data"
        write_folder(parts, place)
        source = setrnn.Source(str(place))
        start = time.perf_counter()
        prepared = setrnn.prepare(source, out=Path(folder) / "prepared", settings=settings)
        tagger = setrnn.train(
            prepared.folder, method, settings=settings, seed=seed, device=arguments["device"]
        )
        seconds = time.perf_counter() - start
        measured = {part: measure(tagger, parts[part]) for part in ("valid", "test")}
    row = {**run, "n_train": len(parts["train"]), "seconds": round(seconds, 1), **measured}
    with arguments["out"].open("a") as file:
        file.write(json.dumps(row) + "\n")
    shown = {name: round(value, 3) for name, value in measured["valid"].items()}
    print(f"{way}/{arm} {method} seed {seed}: {seconds:.0f} s, valid {shown}", flush=True)


def measure(tagger: setrnn.Tagger, examples: list[Example]) -> dict[str, float]:
    """Measure by the rule made for each measure; the others by the most probable set."""
    found = setrnn.evaluate_rules(tagger, examples, ["set", *RULES.values()])
    scores = {name: found[rule].as_dict()[name] for name, rule in RULES.items()}
    by_set = found["set"].as_dict()
    return scores | {name: by_set[name] for name in MEASURES if name not in scores}


def read_parts(
    data: str, n_train: int | None = None, n_others: int | None = None
) -> dict[str, list[Example]]:
    """Read the first documents of each part; all if no number is given."""
    splits = open_dataset(data).splits
    parts = {name: list(splits[name].read(BadRows())) for name in ("train", "valid", "test")}
    return {name: each[: n_train if name == "train" else n_others] for name, each in parts.items()}


def write_vectors(data: str, file: Path) -> None:
    """Learn word vectors from the texts, without their labels, and write word2vec binary."""
    from setrnn.config import VectorSettings
    from setrnn.data.vectors import word_vectors

    parts = read_parts(data)
    train = [replace(example, labels=("document",)) for example in parts["train"]]
    with tempfile.TemporaryDirectory() as folder:
        write_folder({"train": train}, Path(folder) / "data")
        prepared = setrnn.prepare(str(Path(folder) / "data"), out=Path(folder) / "prepared")
        vectors = np.array(word_vectors(prepared, VectorSettings()))
        words = prepared.encoder.tokens
    with file.open("wb") as stream:
        stream.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(words, vectors, strict=False):
            stream.write(word.encode() + b" " + vector.astype("<f4").tobytes() + b"\n")
    print(f"Wrote {file}: {len(words):,} words")


def read_results(file: Path) -> list[dict[str, Any]]:
    """Return the records that are there."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def format_table(rows: list[dict[str, Any]]) -> str:
    """Lay out the means over seeds as Markdown, valid / test."""
    lines = [
        "| labels lost | arm | system | seeds | " + " | ".join(MEASURES) + " |",
        "|---" * (4 + len(MEASURES)) + "|",
    ]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = [(way, arm, method) for method in methods for way in ARMS for arm in ARMS[way]]
    for way, arm, method in cells:
        own = [row for row in rows if (row["way"], row["arm"], row["method"]) == (way, arm, method)]
        if own:
            means = [
                " / ".join(f"{np.mean([row[part][name] for row in own]):.3f}" for part in PARTS)
                for name in MEASURES
            ]
            lines.append(f"| {way} | {arm} | `{method}` | {len(own)} | " + " | ".join(means) + " |")
    return "\n".join(lines)


PARTS = ("valid", "test")


def _key(row: dict[str, Any]) -> tuple[str, str, str, int]:
    return row["way"], row["arm"], row["method"], row["seed"]


if __name__ == "__main__":
    main()
