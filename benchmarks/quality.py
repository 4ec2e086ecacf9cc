"""Quality of the networks: one JSON record a run, for the tables of docs/results.

    python benchmarks/quality.py DATA --methods set-rnn --seeds 0,1,2 --out DIR [--set ...]
        [--preset NAME] [--models DIR] [--predictions]

Trains on train, chooses the epoch and fits thresholds and calibration on valid, and measures
valid and test by every rule. A run whose record is there already is passed over. Several of
these commands share one GPU well.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from setrnn.comparison.run import list_rules
from setrnn.config import Config, load_config, to_dict
from setrnn.data.cache import Source, open_prepared
from setrnn.data.folders import whole_file
from setrnn.data.prepared import Prepared
from setrnn.methods import METHODS, find_method
from setrnn.tagging.calibrating import fit_calibration
from setrnn.tagging.evaluation import evaluate_prepared
from setrnn.tagging.labelled import prepared_batches
from setrnn.tagging.tagger import Tagger
from setrnn.training.options import TrainOptions

SHOWN = {"set": "subset_accuracy", "f1": "instance_f1", "label-f1": "label_f1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    networks = [name for name, method in METHODS.items() if method.is_neural]
    parser.add_argument("--methods", default=",".join(networks))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", type=Path, help="keep the models in this folder")
    parser.add_argument("--predictions", action="store_true", help="keep those on test")
    arguments = parser.parse_args()
    for method in arguments.methods.split(","):
        for seed in arguments.seeds.split(","):
            config = load_config(arguments.preset, None, [*arguments.settings, f"seed={seed}"])
            prepared = open_prepared(Source(arguments.data), config.text)
            name = f"{prepared.name}-{method}-{seed}"
            if not (arguments.out / f"{name}.json").exists():
                run(prepared, method, config, arguments, name)


def run(
    prepared: Prepared, method: str, config: Config, arguments: argparse.Namespace, name: str
) -> None:
    """Train and measure one model, and write its record."""
    start = time.perf_counter()
    trained = find_method(method).train(prepared, config, TrainOptions(arguments.device))
    seconds = time.perf_counter() - start
    tagger = Tagger.trained_on(prepared, method, config, trained.system)
    batches = prepared_batches(tagger, prepared, "valid")
    tagger = replace(tagger, calibration=fit_calibration(tagger, batches))
    record: dict[str, Any] = {
        "data": prepared.name,
        "method": method,
        "seed": config.seed,
        "settings": [*arguments.settings, f"preset={arguments.preset}"],
        "config": to_dict(config),
        "training_seconds": round(seconds, 1),
        "epochs": trained.notes.get("epochs", []),
        "best_epoch": trained.notes.get("best_epoch"),
        "scores": {
            split: {
                rule: evaluate_prepared(tagger, prepared, split, rule).as_dict()
                for rule in list_rules(tagger)
            }
            for split in ("valid", "test")
        },
    }
    if arguments.predictions:
        record["predicted"] = {
            rule: predicted_ids(tagger, prepared, rule) for rule in list_rules(tagger)
        }
    if arguments.models is not None:
        tagger.save(arguments.models / name)
    with whole_file(arguments.out / f"{name}.json") as stream:
        stream.write(json.dumps(record, indent=1).encode())
    test = record["scores"]["test"]
    shown = {f"{rule} {measure}": round(test[rule][measure], 4) for rule, measure in SHOWN.items()}
    print(name, f"{seconds:.0f} s", shown, flush=True)


def predicted_ids(tagger: Tagger, prepared: Prepared, rule: str) -> list[list[int]]:
    """Predict the test documents."""
    found = tagger.tag_tokens(prepared.split("test").tokens, rule)
    index = tagger.labels.index
    return [[index[label] for label in each.labels] for each in found]


if __name__ == "__main__":
    main()
