"""Write the tables of docs/results/beyond-tables.md from records.

    python benchmarks/beyond_tables.py RECORDS --out docs/results

RECORDS is a folder: compare/GROUP/DATA is the folder of a `setrnn compare`, under the name of a
group of runs; calibration/DATA.json is written by `calibration.py --out`, completion/DATA.json by
`completion.py --json`. Or RECORDS is the beyond.json that this script wrote, which holds all that
the tables show.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from setrnn.comparison.records import Comparison, load_records
from setrnn.metrics import MEASURES

Record = dict[str, Any]
RULES = ("set", "f1", "hamming", "micro-f1", "label-f1")
KEPT = (*MEASURES, "set_log_likelihood", "missing_mass", "calibration_error")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    is_file = arguments.records.is_file()
    found = json.loads(arguments.records.read_text()) if is_file else collect(arguments.records)
    parts = [json.dumps(name) + ": [\n" + _lines(rows) + "\n]" for name, rows in found.items()]
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    (arguments.out / "beyond.json").write_text(text, encoding="utf-8")
    (arguments.out / "beyond-tables.md").write_text(tables(found), encoding="utf-8")


def _lines(rows: list[Record]) -> str:
    return ",\n".join(json.dumps(each) for each in rows)


def collect(folder: Path) -> dict[str, list[Record]]:
    """Read the records, and keep what the tables need."""
    quality = []
    for file in sorted(folder.glob("compare/*/*/comparison.json")):
        comparison = Comparison.load(file.parent)
        for record in load_records(file.parent, comparison):
            treatment = record.treatment
            scores = {
                split: {
                    rule: {name: values[name] for name in KEPT} for rule, values in rules.items()
                }
                for split, rules in record.scores.items()
            }
            quality.append(
                {
                    "group": file.parents[1].name,
                    "data": comparison.data,
                    "method": record.method,
                    "seed": record.seed,
                    "settings": [*treatment["settings"], f"preset={treatment['preset']}"],
                    "best_epoch": record.best_epoch,
                    "scores": scores,
                }
            )
    others = {
        kind: [
            {"model": f"{file.stem}-{name}", **row}
            for file in sorted(folder.glob(f"{kind}/*.json"))
            for name, row in json.loads(file.read_text(encoding="utf-8")).items()
        ]
        for kind in ("calibration", "completion")
    }
    return {"quality": quality, **others}


def tables(found: dict[str, list[Record]]) -> str:
    """Write all tables."""
    parts = ["<!-- made by benchmarks/beyond_tables.py from beyond.json -->"]
    quality = found["quality"]
    for data, group in dict.fromkeys((each["data"], each["group"]) for each in quality):
        rows = [each for each in quality if (each["data"], each["group"]) == (data, group)]
        parts += [
            f"## {data}, {group}, {split}\n\n{_quality_table(rows, split)}"
            for split in ("test", "valid")
        ]
    parts.append("## Calibration, test\n\n" + _calibration_table(found["calibration"]))
    parts.append("## One true label given, test\n\n" + _completion_table(found["completion"]))
    return "\n\n".join(parts) + "\n"


def _quality_table(rows: list[Record], split: str) -> str:
    lines = ["| system | rule | " + " | ".join(MEASURES.values()) + " |", "|---" * 7 + "|"]
    likelihoods = []
    for method in dict.fromkeys(each["method"] for each in rows):
        runs = [each["scores"][split] for each in rows if each["method"] == method]
        for rule in RULES:
            cells = [_spread([run[rule][name] for run in runs]) for name in MEASURES]
            lines.append(f"| {method} | {rule} | " + " | ".join(cells) + " |")
        likelihood = _spread([run["set"]["set_log_likelihood"] for run in runs])
        missing = _spread([run["f1"]["missing_mass"] for run in runs])
        likelihoods.append(f"{method}: log p(true set) {likelihood}, missing mass {missing}")
    return "\n".join(lines) + f"\n\n{len(runs)} seeds. " + "; ".join(likelihoods) + "."


def _calibration_table(rows: list[Record]) -> str:
    lines = [
        "| model | T | isotonic | ECE | mean p | right | target | share accepted | right (95%) |",
        "|---" * 9 + "|",
    ]
    for row in rows:
        first = (
            f"| {row['model']} | {row['temperature']:.2f} | {'yes' if row['is_isotonic'] else 'no'}"
            f" | {row['test_error_raw']:.3f} -> {row['test_error']:.3f}"
            f" | {row['mean_probability_raw']:.3f} -> {row['mean_probability']:.3f}"
            f" | {row['subset_accuracy']:.3f}"
        )
        for target, found in row["acceptance"].items():
            test, valid = found["test"], found["valid"]
            shown = f"none: at best {valid['accuracy']:.2f} of the surest on valid | "
            if test["n_accepted"]:
                shown = (
                    f"{test['share_accepted']:.1%} | {test['accuracy_accepted']:.3f} "
                    f"({test['accuracy_accepted_low']:.3f} to {test['accuracy_accepted_high']:.3f})"
                )
            lines.append(f"{first} | {target} | {shown} |")
            first = "| " * 5 + "| "
    return "\n".join(lines)


def _completion_table(rows: list[Record]) -> str:
    lines = [
        "| model | documents | F1 of the rest, ignoring it | given | gain (standard error) "
        "| exactly right | suggestion right |",
        "|---" * 7 + "|",
    ]
    for row in rows:
        without, with_it = row["ignoring"], row["given"]
        lines.append(
            f"| {row['model']} | {row['n_documents']:,} | {without['instance_f1']:.3f} "
            f"| {with_it['instance_f1']:.3f} "
            f"| {row['gain']:+.3f} ({row['gain_standard_error']:.3f})"
            f" | {without['exact']:.3f} -> {with_it['exact']:.3f}"
            f" | {without['suggestion_right']:.3f} -> {with_it['suggestion_right']:.3f} |"
        )
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.4f}"
    return f"{mean(values):.4f} ± {stdev(values):.4f}"


if __name__ == "__main__":
    main()
