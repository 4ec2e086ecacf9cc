"""Turn the records of quality.py into the tables of docs/results.

    python benchmarks/quality_tables.py RECORDS... --out docs/results

RECORDS are record files of `quality.py`, or lists of them. Writes records.json, with the
scores of every run, and tables.md, which is drawn from it alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from setrnn.methods import METHODS

Record = dict[str, Any]
MEASURES = {
    "instance_f1": "instance-F1",
    "label_f1": "label-F1",
    "micro_f1": "micro-F1",
    "subset_accuracy": "subset accuracy",
    "hamming_loss": "hamming loss",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    records = [_slim(each) for file in arguments.records for each in _read(file)]
    order = list(METHODS)
    records.sort(key=lambda each: (each["data"], order.index(each["method"]), each["seed"]))
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(each) for each in records)
    (arguments.out / "records.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    (arguments.out / "tables.md").write_text(tables(records), encoding="utf-8")


def tables(records: list[Record]) -> str:
    """Write all tables."""
    parts = ["<!-- made by benchmarks/quality_tables.py from records.json -->"]
    for data in dict.fromkeys(each["data"] for each in records):
        rows = [each for each in records if each["data"] == data]
        n_documents = rows[0]["scores"]["test"]["set"]["n_documents"]
        parts.append(f"## {data}, test ({n_documents:,} documents)")
        parts.append(_systems_table(rows))
        parts.append(_rules_table(rows))
    return "\n\n".join(parts) + "\n"


def _systems_table(records: list[Record]) -> str:
    """Lay out the paper's Table 2: every system by its own rule."""
    lines = ["| system (its own rule) | " + " | ".join(MEASURES.values()) + " |"]
    lines.append("|---" * (len(MEASURES) + 1) + "|")
    cells = {
        method: {name: _values(runs, METHODS[method].rule, name) for name in MEASURES}
        for method, runs in _by_method(records)
    }
    best = {
        name: (min if name == "hamming_loss" else max)(
            cells, key=lambda method, name=name: mean(cells[method][name])
        )
        for name in MEASURES
    }
    for method, row in cells.items():
        shown = [_cell(row[name], name, best[name] == method) for name in MEASURES]
        lines.append(f"| `{method}` | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _rules_table(records: list[Record]) -> str:
    """Lay out the paper's Table 3: by the most probable sequence, and by the set."""
    names = ("instance_f1", "label_f1", "micro_f1")
    lines = ["| `sequence` → `set` | " + " | ".join(MEASURES[name] for name in names) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    for method, runs in _by_method(records):
        if not METHODS[method].is_neural:
            continue
        shown = []
        for name in names:
            before, after = (_values(runs, rule, name) for rule in ("sequence", "set"))
            gains = [b - a for a, b in zip(before, after, strict=True)]
            shown.append(f"{_f1(mean(before))} → {_f1(mean(after))} ({mean(gains):+.4f})")
        lines.append(f"| `{method}` | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _by_method(records: list[Record]) -> Iterable[tuple[str, list[Record]]]:
    for method in METHODS:
        runs = [each for each in records if each["method"] == method]
        if runs:
            yield method, runs


def _values(runs: list[Record], rule: str, name: str) -> list[float]:
    return [each["scores"]["test"][rule][name] for each in runs]


def _cell(values: list[float], name: str, is_best: bool) -> str:
    digits = 4 if name == "hamming_loss" else 3
    text = _f1(mean(values), digits)
    text = f"**{text}**" if is_best else text
    return f"{text} ± {_f1(stdev(values), digits)}" if len(values) > 1 else text


def _f1(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".removeprefix("0")


def _read(file: Path) -> list[Record]:
    found = json.loads(file.read_text(encoding="utf-8"))
    return found if isinstance(found, list) else [found]


def _slim(record: Record) -> Record:
    """Keep what the tables need, and what repeats the run."""
    epochs = record.get("epochs", [])
    metric = "instance_f1"
    best = max(epochs, key=lambda each: each[metric])["epoch"] if epochs else None
    measures = [*MEASURES, "n_documents", "mean_probability"]
    scores = {
        split: {rule: {name: found[name] for name in measures} for rule, found in rules.items()}
        for split, rules in record["scores"].items()
    }
    return {
        "data": record["data"],
        "method": record["method"],
        "seed": record["seed"],
        "settings": record["settings"],
        "best_epoch": record.get("best_epoch", best),
        "training_seconds": record["training_seconds"],
        "scores": scores,
    }


if __name__ == "__main__":
    main()
