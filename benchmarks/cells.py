"""Compare systems on few documents and on short texts: cuts ("cells") of several datasets.

    python benchmarks/cells.py cut CELLS DATA... [--documents 500,2000,7000] [--words 8,20,50]
        [--valid 2000] [--text-field title,text] [--test]
    python benchmarks/cells.py run CELLS OUT [--methods NAMES] [--seeds 1] [--jobs 5]
        [--device cuda] [--set KEY=VALUE]...
    python benchmarks/cells.py [--json FILE] table OUT

`cut` writes a folder with train, valid and test for each dataset, number of documents and number
of words per document; 0 stands for all. One half of valid becomes the test part, so that nothing
is chosen on test; with --test it is the test part itself. `run` makes one comparison per cell; the
same command does what is missing. `table` shows each measure by the rule made for it, and marks the
systems that failed, that are not better than the best constant set, or that are behind the first.
The folders are datasets as all others: `automatic.py`, `ablations.py` and `peers/run.py` take them.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import setrnn
from harness import (
    add_settings,
    format_scores,
    make_parser,
    print_head,
    print_row,
    save,
    split_numbers,
)
from setrnn.comparison.records import Comparison, Record, load_records, order_systems
from setrnn.data.example import Example
from setrnn.data.read import BadRows, write_examples
from setrnn.systems.rules import rule_for

METHODS = "br-support,set-rnn,set-rnn-exact,sigmoid,mixture"
MEASURES = ("instance_f1", "label_f1", "micro_f1")
MARGIN = 0.02  # of instance-F1: a system that is more than this below the first is behind
SEED = 15  # of the choice of documents


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
    runs.add_argument("--seeds", type=int, default=1)
    runs.add_argument("--jobs", type=int, default=1)
    add_settings(runs)
    work.add_parser("table").add_argument("out", type=Path)
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
    """Compare the systems on each cell."""
    for folder in sorted(each for each in chosen.cells.iterdir() if each.is_dir()):
        setrnn.compare(
            folder,
            chosen.methods,
            out=chosen.out / folder.name,
            seeds=chosen.seeds,
            jobs=chosen.jobs,
            settings=chosen.settings,
            device=chosen.device,
        )
        print(folder.name, flush=True)


def show_table(chosen: argparse.Namespace) -> None:
    """Print a row per cell."""
    found = {each.parent.name: read_cell(each.parent) for each in find_comparisons(chosen.out)}
    methods = list(dict.fromkeys(method for row in found.values() for method in row))
    print_head("cell", *methods)
    for cell, row in found.items():
        print_row(cell, *(row.get(method, "") for method in methods))
    save(found, chosen.json)


def find_comparisons(out: Path) -> list[Path]:
    return sorted(out.glob("*/comparison.json"))


def read_cell(folder: Path) -> dict[str, str]:
    """Return by system its scores and what is wrong with them."""
    comparison = Comparison.load(folder)
    records = load_records(folder, comparison)
    constant = best_constant(comparison)
    found: dict[str, str] = {}
    first = None
    for method in order_systems(records):
        runs = [each for each in records if each.method == method and each.failure is None]
        if not runs:
            found[method] = "**failed**"
            continue
        scores = [fmean(score_by_rule(each, measure) for each in runs) for measure in MEASURES]
        first = scores[0] if first is None else first
        behind = " **behind**" if scores[0] < first - MARGIN else ""
        verdict = " **learned nothing**" if scores[0] <= constant else behind
        found[method] = format_scores(scores) + verdict
    return found


def score_by_rule(record: Record, measure: str) -> float:
    """Return a measure of the test part by the rule made for it, or by the system's own."""
    scores = record.scores["test"]
    return float(scores.get(rule_for(measure), scores[record.own_rule])[measure])


def best_constant(comparison: Comparison) -> float:
    """Return the instance-F1 of the best constant set: the most frequent labels of train."""
    sizes = range(1, min(comparison.n_labels, 10) + 1)
    return max(
        fmean(
            2 * sum(label < size for label in true) / (size + len(true))
            for true in comparison.truth
        )
        for size in sizes
    )


if __name__ == "__main__":
    main()
