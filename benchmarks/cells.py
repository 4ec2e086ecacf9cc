"""Are the default settings right on any data? Networks on cuts ("cells") of several datasets.

    python benchmarks/cells.py cut CELLS DATA... [--documents 500,2000,7000] [--words 8,20,50]
        [--valid 2000] [--text-field title,text] [--test]
    python benchmarks/cells.py run CELLS OUT [--methods NAMES] [--seeds 1] [--jobs 5]
        [--device cuda] [--variant NAME:KEY=VALUE,KEY=VALUE]...
    python benchmarks/cells.py [--json FILE] table OUT...

`cut` writes a folder with train, valid and test for each dataset, number of documents and number
of words per document; 0 stands for all. One half of valid becomes the test part, so that nothing
is chosen on test; with --test it is the test part itself. `run` trains each network on each cell,
with the default settings (on a CPU those of preset small) and with each variant, and writes a line
of scores per run to OUT/scores.jsonl; the same command does what is missing. `table` shows
instance-F1 by rule f1, and the regret of the default settings: how much the best variant is ahead,
with two paired standard errors over the documents. Part of the regret is chance: the best of
several has luck too.
The folders are datasets as all others: `automatic.py`, `ablations.py` and `peers/run.py` take them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import setrnn
from harness import make_parser, print_head, print_row, save, split_numbers
from setrnn.data.example import Example
from setrnn.data.read import BadRows, write_examples
from setrnn.metrics import MEASURES

METHODS = "set-rnn-exact,sigmoid"
DEFAULT, RULE = "default", "f1"
SCORES = "scores.jsonl"
SEED = 15  # of the choice of documents
Run = dict[str, Any]


def main(given: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    work = parser.add_subparsers(dest="work", required=True)
    cuts = work.add_parser("cut")
    cuts.add_argument("cells", type=Path)
    cuts.add_argument("data", nargs="+")
    cuts.add_argument("--documents", type=split_numbers, default=[500, 2000, 7000])
    cuts.add_argument("--words", type=split_numbers, default=[8, 20, 50])
    cuts.add_argument("--valid", type=int, default=2000, help="documents of each other part")
    cuts.add_argument("--text-field")
    cuts.add_argument("--test", action="store_true", help="measure on the test part")
    runs = work.add_parser("run")
    runs.add_argument("cells", type=Path)
    runs.add_argument("out", type=Path)
    runs.add_argument("--methods", default=METHODS)
    runs.add_argument("--variant", action="append", default=[], help="NAME:KEY=VALUE,KEY=VALUE")
    runs.add_argument("--seeds", type=int, default=1)
    runs.add_argument("--jobs", type=int, default=1)
    runs.add_argument("--device", default="auto")
    work.add_parser("table").add_argument("out", type=Path, nargs="+")
    chosen = parser.parse_args(given)
    {"cut": cut, "run": run, "table": show_table}[chosen.work](chosen)


def cut(chosen: argparse.Namespace) -> None:
    """Write the folder of each cell."""
    options = setrnn.ReadOptions(text_field=chosen.text_field) if chosen.text_field else None
    for data in chosen.data:
        parts = read_parts(data, options or setrnn.ReadOptions(), chosen.test)
        for n_documents in chosen.documents:
            for n_words in chosen.words:
                most = {"train": n_documents, "valid": chosen.valid, "test": chosen.valid}
                folder = chosen.cells / f"{Path(data).name}-{n_documents}-{n_words}"
                for part, examples in parts.items():
                    few = examples[: most[part] or None]
                    write_examples(shorten(few, n_words), folder / f"{part}.jsonl")
                print(folder, flush=True)


def read_parts(data: str, options: setrnn.ReadOptions, on_test: bool) -> dict[str, list[Example]]:
    """Return the documents of each part, shuffled; test is half of valid, or the test part."""
    splits = setrnn.Source(data, options, cut_valid=True).open().splits
    names = ("train", "valid", "test") if on_test else ("train", "valid")
    parts = {name: list(splits[name].read(BadRows())) for name in names}
    for examples in parts.values():
        random.Random(SEED).shuffle(examples)
    if not on_test:
        parts |= {"valid": parts["valid"][::2], "test": parts["valid"][1::2]}
    return parts


def shorten(examples: Iterable[Example], n_words: int) -> Iterable[Example]:
    """Keep the first words of each text."""
    for each in examples:
        text = " ".join(each.text.split()[:n_words]) if n_words else each.text
        yield replace(each, text=text)


def run(chosen: argparse.Namespace) -> None:
    """Train and measure what OUT has no line of; several at a time."""
    chosen.out.mkdir(parents=True, exist_ok=True)
    file = chosen.out / SCORES
    done = {name_run(each) for each in read_runs(file)} if file.is_file() else set()
    asked = [each for each in list_runs(chosen) if name_run(each) not in done]
    os.environ["OMP_NUM_THREADS"] = "1"
    workers = multiprocessing.get_context("spawn").Pool(chosen.jobs)
    with workers, file.open("a", encoding="utf-8") as stream:
        for each in workers.imap_unordered(measure, asked):
            stream.write(json.dumps(each) + "\n")
            stream.flush()
            print(*name_run(each), each["scores"][RULE]["instance_f1"], flush=True)


def list_runs(chosen: argparse.Namespace) -> Iterator[Run]:
    """Yield all runs: those of one variant first, so that each prepares a cell of its own."""
    variants = {DEFAULT: ""} | dict(each.split(":", 1) for each in chosen.variant)
    cells = sorted(each for each in chosen.cells.iterdir() if each.is_dir())
    for seed in range(chosen.seeds):
        for name, settings in variants.items():
            for method in chosen.methods.split(","):
                for cell in cells:
                    yield {
                        "cell": cell.name, "method": method, "variant": name, "seed": seed,
                        "settings": [each for each in settings.split(",") if each],
                        "folder": str(cell), "device": chosen.device,
                    }  # fmt: skip


def name_run(each: Run) -> tuple[str, str, str, int]:
    return each["cell"], each["method"], each["variant"], each["seed"]


def measure(each: Run) -> Run:
    """Train one network, and measure it on the test part by every rule among all sets."""
    folder = Path(each["folder"])
    tagger = setrnn.train(
        folder, each["method"], settings=each["settings"], seed=each["seed"], device=each["device"]
    )
    found = setrnn.evaluate_rules(tagger, folder, tagger.rules, split="test")
    lines = (folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = zip(map(json.loads, lines), found[RULE].predictions, strict=True)
    f1s = [score_document(set(true["labels"]), set(given.labels)) for true, given in pairs]
    scores = {
        rule: {name: round(getattr(by.scores, name.replace("-", "_")), 4) for name in MEASURES}
        for rule, by in found.items()
    }
    notes = tagger.notes
    return {
        **{key: each[key] for key in ("cell", "method", "variant", "seed", "settings")},
        "scores": scores,
        "best_epoch": notes["best_epoch"],
        "epochs": [round(epoch["instance_f1"], 4) for epoch in notes["epochs"]],
        "training_seconds": notes["training_seconds"],
        "f1s": [round(f1, 3) for f1 in f1s],
    }


def score_document(true: set[str], given: set[str]) -> float:
    return 2 * len(true & given) / (len(true) + len(given)) if true or given else 1.0


def read_runs(*files: Path) -> list[Run]:
    return [json.loads(line) for file in files for line in file.open(encoding="utf-8")]


def show_table(chosen: argparse.Namespace) -> None:
    """Print for each method a row per cell, then the mean and the largest regret per variant."""
    by_cell: dict[str, dict[str, dict[str, list[Run]]]] = {}
    for each in read_runs(*(out / SCORES for out in chosen.out)):
        cells = by_cell.setdefault(each["method"], {})
        cells.setdefault(each["cell"], defaultdict(list))[each["variant"]].append(each)
    for method, cells in sorted(by_cell.items()):
        names = list(dict.fromkeys(name for found in cells.values() for name in found))
        print_head(method, *names, "regret of the default")
        regrets = defaultdict(list)
        for cell, found in sorted(cells.items()):
            if DEFAULT not in found:  # the run was stopped
                continue
            means = {name: fmean(map(instance_f1, runs)) for name, runs in found.items()}
            best = max(means, key=lambda name: means[name])
            for name, mean in means.items():
                regrets[name].append(means[best] - mean)
            behind = [b - a for b, a in zip(f1s(found[best]), f1s(found[DEFAULT]), strict=True)]
            error = stdev(behind) / len(behind) ** 0.5
            first = "" if best == DEFAULT else f"{fmean(behind):.3f} ± {2 * error:.3f}, {best}"
            print_row(
                cell, *(f"{means[name]:.3f}" if name in means else "" for name in names), first
            )
        for kind, reduce in (("mean", fmean), ("largest", max)):
            shown = (f"{reduce(regrets[name]):.4f}" for name in names)
            print_row(f"{kind} regret, {len(cells)} cells", *shown, "")
        print()
    save(by_cell, chosen.json)


def instance_f1(each: Run) -> float:
    return float(each["scores"][RULE]["instance_f1"])


def f1s(runs: Sequence[Run]) -> list[float]:
    """Return the F1 of each document: the mean over seeds."""
    return [fmean(seeds) for seeds in zip(*(each["f1s"] for each in runs), strict=True)]


if __name__ == "__main__":
    main()
