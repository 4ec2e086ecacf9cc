"""What a step of training costs with K orders per document, as a ratio to seq2seq-rnn.

    python benchmarks/cost_by_k.py PREPARED [--preset paper] [--device cuda] [--k 1,4,12,48]
        [--steps 60] [--rounds 3] [--set KEY=VALUE]... [--json FILE.json]

PREPARED is a prepared folder (`setrnn data prepare`) or any data. Every system trains on the same
batches. The systems take turns, and a ratio is the median over the rounds of this run. On a CPU,
the time is that of the process. The paper says: at most K times slower than a vanilla RNN;
Vinyals-RNN-uniform about 1.5 times faster than the others. A set of n labels has n! orders: the
last row has the mean number of orders per document that a search with K finds.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch

from setrnn.config import Config, load_config
from setrnn.data.cache import Source, open_prepared
from setrnn.data.prepared import Prepared
from setrnn.methods import find_method
from setrnn.model.devices import find_device
from setrnn.model.network import make_network
from setrnn.objectives import find_objective
from setrnn.objectives.few_orders import count_orders
from setrnn.training.loop import Trainer
from setrnn.training.optimizer import set_learning_rate
from setrnn.training.schedule import fit_to_data

FIRST = "seq2seq-rnn"  # one order per document, whatever K is
METHODS = ("vinyals-uniform", "vinyals-sample", "vinyals-max", "set-rnn")
WARM_STEPS = 3


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--k", default="1,4,12,48", help="the numbers of orders per document")
    parser.add_argument("--steps", type=int, default=60, help="timed steps per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(given)
    config = load_config(arguments.preset, None, arguments.settings)
    prepared = open_prepared(Source(arguments.data), config.text)
    config = fit_to_data(config, prepared)
    device = find_device(arguments.device).type
    numbers = [int(each) for each in arguments.k.split(",")]
    turns = [(FIRST, 1), *((name, k) for name in arguments.methods.split(",") for k in numbers)]
    seconds: dict[tuple[str, int], list[float]] = {turn: [] for turn in turns}
    for _ in range(arguments.rounds):
        for name, k in turns:
            seconds[name, k].append(time_steps(prepared, config, name, k, arguments.steps, device))
            print(f"{name}, K = {k}: {seconds[name, k][-1]:.1f} ms per step", flush=True)
    ratios = {turn: median_ratio(seconds[turn], seconds[FIRST, 1]) for turn in turns}
    sizes = torch.from_numpy(prepared.split("train").labels.lengths)
    orders = {k: float(count_orders(sizes, k).double().mean()) for k in numbers}
    print(write_table(ratios, orders))
    if arguments.json:
        values = {
            "data": prepared.name,
            "labels_per_document": float(sizes.double().mean()),
            "preset": arguments.preset,
            "settings": arguments.settings,
            "batch_size": config.training.batch_size,
            "device": torch.cuda.get_device_name() if device == "cuda" else platform.machine(),
            "torch": torch.__version__,
            "steps": arguments.steps,
            "orders_per_document": orders,
            "rows": [
                {"method": name, "k": k, "ratio": ratios[name, k], "ms_per_step": each}
                for (name, k), each in seconds.items()
            ],
        }
        arguments.json.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def time_steps(
    prepared: Prepared, config: Config, name: str, k: int, n_steps: int, device: str
) -> float:
    """Train a new network for some steps; return the milliseconds per step."""
    trainer = make_trainer(prepared, config, name, k, device)
    # Not the objective of the first epochs, which may be that of another method.
    objective = find_objective(find_method(name).objective)
    batches = trainer._batches()
    set_learning_rate(trainer.optimizer, 0.0, trainer.settings)
    trainer.network.train()
    start = 0.0
    with trainer.gradients.threads():
        for number in range(WARM_STEPS + n_steps):
            if number == WARM_STEPS:
                start = wait(device)
            trainer._step(trainer._make_batch(batches[number % len(batches)]), objective)
        return 1000 * (wait(device) - start) / n_steps


def make_trainer(prepared: Prepared, config: Config, name: str, k: int, device: str) -> Trainer:
    method = find_method(name)
    config = replace(config, training=replace(config.training, orders=k))
    torch.manual_seed(config.seed)
    network = make_network(prepared, config, method.decoder)
    place = torch.device(device)
    return Trainer(network.to(place), prepared, config, method, place)


def wait(device: str) -> float:
    """Wait for the device; return the time: on a CPU that of this process, whatever else runs."""
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def median_ratio(seconds: list[float], first: list[float]) -> float:
    """Return the median over rounds of the time relative to that of the first system."""
    return statistics.median(each / one for each, one in zip(seconds, first, strict=True))


def write_table(ratios: dict[tuple[str, int], float], orders: dict[int, float]) -> str:
    """Write ratios as Markdown, one system per row and one K per column."""
    lines = ["| | " + " | ".join(f"K = {k}" for k in orders) + " |", "|---" * (len(orders) + 1)]
    lines[-1] += "|"
    for name in dict.fromkeys(name for name, _ in ratios if name != FIRST):
        cells = [f"{ratios[name, k]:.2f}" for k in orders]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    cells = [f"{each:.1f}" for each in orders.values()]
    lines.append("| orders per document | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
