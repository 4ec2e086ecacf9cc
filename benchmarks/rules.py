"""Measure the predictions of one trained model by every rule.

    python benchmarks/rules.py MODEL DATA [--split test] [--beam-width K] [--json FILE]

DATA has valid and test parts, prepared for the model or as texts. The thresholds are those of the
model; if it has none, they are chosen on valid.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from setrnn.comparison.run import list_rules
from setrnn.data.cache import Source, open_prepared
from setrnn.data.prepared import Prepared
from setrnn.metrics import MEASURES
from setrnn.systems.rules.marginal_rules import choose_thresholds
from setrnn.tagging.calibration import Calibration
from setrnn.tagging.evaluating import evaluate
from setrnn.tagging.loading import load
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trained_model import BATCH

ONCE = ("set_log_likelihood", "n_impossible_sets", "missing_mass")  # the same for all rules


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("data")
    parser.add_argument("--split", default="test")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--beam-width", type=int, help="another beam width than that of the model")
    arguments = parser.parse_args()
    tagger = load(arguments.model, arguments.device)
    if arguments.beam_width is not None:
        # thresholds depend on the number of sets searched for
        tagger = replace(tagger.with_beam_width(arguments.beam_width), calibration=None)
    prepared = open_prepared(Source(arguments.data), tagger.config.text)
    tagger = with_thresholds(tagger, prepared)
    print(f"| {tagger.method} | " + " | ".join(MEASURES) + " | documents/s |")
    print("|---" * (len(MEASURES) + 2) + "|")
    found: dict[str, dict[str, object]] = {}
    for rule in list_rules(tagger):
        values = evaluate(tagger, prepared, rule, split=arguments.split).as_dict()
        found[rule] = values
        cells = [f"{values[name]:.4f}" for name in MEASURES]
        print(f"| {rule} | " + " | ".join(cells) + f" | {values['documents_per_second']:,.0f} |")
    values = found["set"]
    print(", ".join(f"{name} {values[name]:.4g}" for name in ONCE))
    if arguments.json:
        record = {
            "model": str(arguments.model.name),
            "method": tagger.method,
            "data": prepared.name,
            "split": arguments.split,
            "rules": found,
        }
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def with_thresholds(tagger: Tagger, prepared: Prepared) -> Tagger:
    if tagger.calibration is not None and tagger.calibration.thresholds is not None:
        return tagger
    valid, n_labels = prepared.split("valid"), len(prepared.labels)
    marginals = np.concatenate(
        [
            tagger.system.marginals(valid.tokens.rows(start, min(start + BATCH, len(valid))))
            for start in range(0, len(valid), BATCH)
        ]
    )
    known = valid.labels.keep(np.asarray(valid.labels.values) < n_labels)
    is_label = np.zeros(marginals.shape, dtype=bool)
    is_label[known.row_numbers, known.values] = True
    thresholds = choose_thresholds(marginals, is_label)
    return replace(tagger, calibration=Calibration(len(valid), thresholds))


if __name__ == "__main__":
    main()
