"""Quality of the recurrent systems: one JSON record a run, for the tables of docs/results.

    python benchmarks/quality.py DATA --methods set-rnn --seeds 0,1,2 --out DIR [--set ...]

Trains on train, chooses the epoch on valid, and measures valid and test by both rules. A run
whose record is there already is passed over. Several of these commands share one GPU well.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from setrnn.config import TRAINING_METRICS, load_config, to_dict
from setrnn.data.folders import whole_file
from setrnn.data.prepared import Prepared
from setrnn.datasets.cache import Source, open_prepared
from setrnn.evaluation import evaluate_prepared
from setrnn.methods import METHODS, TrainOptions, find_method
from setrnn.tagger import Tagger


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    recurrent = [name for name, method in METHODS.items() if method.is_neural]
    parser.add_argument("--methods", default=",".join(recurrent))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    for method in arguments.methods.split(","):
        for seed in arguments.seeds.split(","):
            config = load_config("default", None, [*arguments.settings, f"seed={seed}"])
            prepared = open_prepared(Source(arguments.data), config.text)
            file = arguments.out / f"{prepared.name}-{method}-{seed}.json"
            if file.exists():
                continue
            start = time.perf_counter()
            options = TrainOptions(arguments.device)
            trained = find_method(method).train(prepared, config, options)
            seconds = time.perf_counter() - start
            tagger = Tagger(method, config, prepared.encoder, prepared.labels, trained.system)
            record = {
                "data": prepared.name,
                "method": method,
                "seed": int(seed),
                "settings": arguments.settings,
                "config": to_dict(config),
                "training_seconds": round(seconds, 1),
                "epochs": trained.notes.get("epochs", []),
                "scores": _measure(tagger, prepared),
            }
            with whole_file(file) as stream:
                stream.write(json.dumps(record, indent=1).encode())
            test = record["scores"]["test"][find_method(method).rule]
            shown = {name: round(test[name], 4) for name in TRAINING_METRICS}
            print(method, seed, f"{seconds:.0f} s", shown, flush=True)


def _measure(tagger: Tagger, prepared: Prepared) -> dict[str, dict[str, dict[str, float]]]:
    rules = ("sequence", "set") if find_method(tagger.method).is_neural else ("set",)
    return {
        split: {rule: evaluate_prepared(tagger, prepared, split, rule).as_dict() for rule in rules}
        for split in ("valid", "test")
    }


if __name__ == "__main__":
    main()
