"""Speed of the networks: training and prediction, as ratios in one run.

    python benchmarks/recurrent.py DATA [--device cuda] [--methods seq2seq-rnn,set-rnn]

DATA is a prepared folder (`setrnn data prepare`) or any data. Training speed is that of the
last epoch; prediction speed is the median of several passes over the test part. A system that
emits no sequences, such as sigmoid, is measured by rule `set` alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from pathlib import Path

import torch

from setrnn.data.batches import make_batch, prediction_batches
from setrnn.data.cache import Source, open_prepared
from setrnn.data.ragged import Ragged
from setrnn.methods import find_method
from setrnn.plain_settings import load_config
from setrnn.systems.neural import MAX_DOCUMENTS, MAX_WORDS, NeuralSystem
from setrnn.training.schedule import fit_to_data
from setrnn.training.start import TrainOptions, train_system

PASSES = 5


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--methods", default="seq2seq-rnn,set-rnn")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument(
        "--documents", type=int, default=5_000, help="number of test documents to predict"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(given)
    config = load_config("default", None, ["training.epochs=2", *arguments.settings])
    prepared = open_prepared(Source(arguments.data), config.text)
    config = fit_to_data(config, prepared)
    tokens = prepared.split("test").tokens
    tokens = tokens.rows(0, min(arguments.documents, len(tokens)))
    rows = {}
    for method in arguments.methods.split(","):
        trained = train_system(
            find_method(method), prepared, config, TrainOptions(arguments.device)
        )
        system = trained.system
        assert isinstance(system, NeuralSystem)
        row = {"training": trained.notes["epochs"][-1]["documents_per_second"]}
        row["encoder"] = _speed(tokens, lambda system=system: _encode(system, tokens))
        for source in ("sequences", "sets") if system.emits_sequences else ("sets",):
            row[source] = _speed(
                tokens, lambda system=system, source=source: system.candidates(tokens, 1, source)
            )
        row["one document, ms"] = _latency(system, prepared.split("test").tokens)
        if system.device.type == "cuda":
            row["peak GPU memory, MB"] = torch.cuda.max_memory_allocated() / 2**20
            torch.cuda.reset_peak_memory_stats()
        rows[method] = row
        print(method, {name: round(value, 1) for name, value in row.items()}, flush=True)
    first = next(iter(rows.values()))
    for method, row in rows.items():
        print(f"{method}: training costs x{first['training'] / row['training']:.2f} of the first")
        if "sequences" in row:
            print(f"  `set` takes x{row['sequences'] / row['sets']:.2f} the time of `sequence`")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"peak memory of the process: {peak:,.0f} MB")
    if arguments.json:
        arguments.json.write_text(json.dumps({"data": prepared.name, "rows": rows}, indent=1))


def _speed(tokens: Ragged, work) -> float:  # noqa: ANN001
    """Return documents per second, the median of several passes after a first one."""
    seconds = []
    for _ in range(PASSES + 1):
        start = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return len(tokens) / statistics.median(seconds[1:])


def _encode(system: NeuralSystem, tokens: Ragged) -> None:
    with torch.inference_mode():
        for rows in prediction_batches(tokens.lengths, MAX_DOCUMENTS, MAX_WORDS):
            system.network.encode(make_batch(tokens, None, rows).to(system.device))


def _latency(system: NeuralSystem, tokens: Ragged) -> float:
    """Return the median time to tag one document of about 100 words by `set`, in ms."""
    near = sorted(range(len(tokens)), key=lambda row: abs(int(tokens.lengths[row]) - 100))[:50]
    seconds = []
    for row in near:
        start = time.perf_counter()
        system.candidates(tokens.rows(row, row + 1), 1)
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds)


if __name__ == "__main__":
    main()
