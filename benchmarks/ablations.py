"""What each choice is worth: comparisons that differ from the default settings in one of them.

    python benchmarks/ablations.py run DATA OUT [--seeds 3] [--jobs 3] [--variants NAME...]
    python benchmarks/ablations.py [--json FILE] table OUT...

`run` makes one comparison per variant in OUT/VARIANT; the same command does what is
missing. `table` reads their records alone: each measure by the rule made for it, the difference
from the default, and p of a paired bootstrap over documents and seeds, corrected by Holm's method
over the variants of a system.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import setrnn
from harness import add_settings, make_parser, print_head, print_row, save
from setrnn.comparison.records import Comparison, Record, load_records
from setrnn.comparison.statistics import LEVEL, Bootstrap, Entry, holm
from setrnn.systems.rules import rule_for

DEFAULT = "default"
NETWORK, CLASSICAL = ("set-rnn",), ("br", "br-support", "pcc")
RULES = {
    measure: rule_for(measure)
    for measure in ("instance_f1", "label_f1", "micro_f1", "subset_accuracy")
}


@dataclass(frozen=True)
class Variant:
    """Systems with one setting that is not the default."""

    setting: str
    methods: tuple[str, ...] = NETWORK


VARIANTS = {
    DEFAULT: Variant("", (*NETWORK, *CLASSICAL)),
    "additive-attention": Variant("model.attention=additive"),
    "no-label-output": Variant("model.label_output=false"),
    "own-stop-vector": Variant("model.stop_vector=true"),
    "repeats": Variant("model.repeats=true"),
    "no-evidence": Variant("model.evidence=false"),
    "no-average": Variant("training.average=0"),
    "tuned-vectors": Variant("model.word_vectors=tuned"),
    "frozen-vectors": Variant("model.word_vectors=frozen"),
    "orders-1": Variant("training.orders=1"),
    "orders-4": Variant("training.orders=4"),
    "orders-48": Variant("training.orders=48"),
    "no-word-pairs": Variant("classical.max_pairs=0", CLASSICAL),
}


def main(given: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    work = parser.add_subparsers(dest="work", required=True)
    runs = work.add_parser("run")
    runs.add_argument("data", help="a dataset, or a prepared folder")
    runs.add_argument("out", type=Path)
    runs.add_argument("--seeds", type=int, default=3)
    runs.add_argument("--jobs", type=int, default=1)
    runs.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    add_settings(runs)
    work.add_parser("table").add_argument("out", type=Path, nargs="+")
    chosen = parser.parse_args(given)
    if chosen.work == "run":
        for name in chosen.variants:
            run_variant(name, chosen)
        return
    found = {folder.name: compare_variants(folder) for folder in chosen.out}
    print_head("data", "system", "variant", *RULES)
    for data, rows in found.items():
        for row in rows:
            cells = [_format(row[measure]) for measure in RULES]
            print_row(data, f"`{row['method']}`", row["variant"], *cells)
    save(found, chosen.json)


def run_variant(name: str, chosen: argparse.Namespace) -> None:
    """Compare the systems of a variant."""
    variant = VARIANTS[name]
    setrnn.compare(
        chosen.data,
        list(variant.methods),
        out=chosen.out / name,
        seeds=chosen.seeds,
        jobs=chosen.jobs,
        settings=[*chosen.settings, *([variant.setting] if variant.setting else [])],
        device=chosen.device,
    )


def compare_variants(folder: Path) -> list[dict[str, Any]]:
    """Return a row per variant and system: scores, differences from the default, and p-values."""
    names = [name for name in VARIANTS if (folder / name / "comparison.json").is_file()]
    comparison = Comparison.load(folder / DEFAULT)
    records = [each for name in names for each in _read(folder / name, name)]
    draws = Bootstrap(comparison, records)
    rows = []
    for method in (*NETWORK, *CLASSICAL):
        known = {entry.system for entry in draws.entries}
        of_method = [name for name in names if _name(name, method) in known]
        if DEFAULT not in of_method:
            continue
        found: dict[str, dict[str, Any]] = {name: {} for name in of_method}
        for measure, rule in RULES.items():
            base = Entry(_name(DEFAULT, method), rule)
            others = [name for name in of_method if name != DEFAULT]
            gains = [
                draws.difference(Entry(_name(name, method), rule), base, measure) for name in others
            ]
            corrected = holm([gain.p for gain in gains])
            found[DEFAULT][measure] = {"mean": draws.mean(base, measure)}
            for name, gain, p in zip(others, gains, corrected, strict=True):
                found[name][measure] = {**vars(gain), "p": p}
        rows += [{"method": method, "variant": name} | found[name] for name in of_method]
    return rows


def _format(cell: dict[str, float]) -> str:
    if "p" not in cell:  # the default itself
        return f"{cell['mean']:.3f}"
    star = " *" if cell["p"] < LEVEL else ""
    return f"{cell['mean']:+.3f} ({cell['low']:+.3f} to {cell['high']:+.3f}){star}"


def _read(folder: Path, variant: str) -> list[Record]:
    records = load_records(folder, Comparison.load(folder))
    return [
        replace(each, method=_name(variant, each.method))
        for each in records
        if each.failure is None
    ]


def _name(variant: str, method: str) -> str:
    return f"{variant}: {method}"


if __name__ == "__main__":
    main()
