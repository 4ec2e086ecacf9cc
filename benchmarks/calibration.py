"""Measure the calibration of set probabilities, and the share of documents that is accepted.

    python benchmarks/calibration.py DATA MODEL... [--targets 0.9,0.8] [--rule RULE]
        [--confidence 0.9] [--device auto] [--out FILE.json]

Each saved model is calibrated on the valid part of DATA (a prepared folder of its vocabulary, or
the data itself) and measured on the test part, which is used for nothing else. The model folders
are not changed. ECE: expected calibration error, 15 bins of equal mass.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from setrnn import Tagger, calibrate, evaluate, load


def measure(tagger: Tagger, data: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Calibrate on valid for each target, and measure on test."""
    row: dict[str, Any] = {"method": tagger.method, "acceptance": {}}
    raw = evaluate(replace(tagger, calibration=None), data, arguments.rule, split="test")
    row["mean_probability_raw"] = raw.mean_probability
    for target in arguments.targets:
        found = calibrate(tagger, data, arguments.rule, target, arguments.confidence, split="valid")
        test = evaluate(found.tagger, data, found.rule, split="test")
        scaling = next(iter(found.calibration.scalings.values()))
        row |= {
            "rule": found.rule,
            "temperature": scaling.temperature,
            "is_isotonic": scaling.isotonic is not None,
            "valid_error_raw": found.before.error,
            "valid_error_held_out": found.after.error,
            "test_error_raw": test.calibration_error_raw,
            "test_error": test.calibration_error,
            "mean_probability": test.mean_probability,
            "subset_accuracy": test.scores.subset_accuracy,
        }
        assert test.accepted is not None
        row["acceptance"][str(target)] = {
            "valid": asdict(found.acceptance),
            "test": asdict(test.accepted),
        }
    return row


def lines(name: str, row: dict[str, Any]) -> Iterator[str]:
    """Yield the rows of one model for both tables, as Markdown."""
    yield (
        f"| {name} | {row['temperature']:.2f} | {'yes' if row['is_isotonic'] else 'no'} "
        f"| {row['valid_error_raw']:.3f} -> {row['valid_error_held_out']:.3f} "
        f"| {row['test_error_raw']:.3f} -> {row['test_error']:.3f} "
        f"| {row['mean_probability_raw']:.3f} -> {row['mean_probability']:.3f} "
        f"| {row['subset_accuracy']:.3f} |"
    )
    for target, found in row["acceptance"].items():
        valid, test = found["valid"], found["test"]
        if valid["threshold"] is None:
            best = f"none: at best {valid['accuracy']:.3f} on valid"
            yield f"| {name} | {target} | - | 0 | {best} | - |"
            continue
        yield (
            f"| {name} | {target} | {valid['threshold']:.3f} "
            f"| {valid['share']:.1%}, {valid['accuracy']:.3f} "
            f"| {test['share_accepted']:.1%} ({test['n_accepted']:,}) "
            f"| {test['accuracy_accepted']:.3f} ({test['accuracy_accepted_low']:.3f} to "
            f"{test['accuracy_accepted_high']:.3f}) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--targets", type=lambda text: [float(each) for each in text.split(",")])
    parser.add_argument("--confidence", type=float, default=0.9)
    parser.add_argument("--rule")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    arguments.targets = arguments.targets or [0.9, 0.8]

    print("| model | T | isotonic | valid ECE, held out | test ECE | test mean p | right |")
    print("| model | target | threshold | valid share, right | test share | test right (95%) |")
    rows = {}
    for folder in arguments.models:
        tagger = replace(load(folder, arguments.device), calibration=None)
        rows[folder.name] = measure(tagger, arguments.data, arguments)
        print(*lines(folder.name, rows[folder.name]), sep="\n", flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
