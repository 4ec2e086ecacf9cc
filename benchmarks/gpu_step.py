"""What a step of training costs on a GPU, and how long the GPU is busy, against another checkout.

    python benchmarks/gpu_step.py PREPARED [--methods set-rnn,set-rnn-exact,seq2seq-rnn]
        [--before OTHER_CHECKOUT/src] [--set KEY=VALUE]... [--out FILE.json]

PREPARED is a prepared folder. Each method is trained for --warm steps, then timed for --steps, then
some steps are profiled: operations started, waits of the CPU for the GPU, and the time in which at
least one operation runs on the GPU. With --before, each method is measured by both, one after the
other, in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--methods", default="seq2seq-rnn,set-rnn,set-rnn-exact")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--warm", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--profiled", type=int, default=20)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help="measure this method here, and print JSON")
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.one, chosen)))
        return
    rows: dict[str, dict[str, Any]] = {}
    checkouts = {"now": None} if chosen.before is None else {"before": chosen.before, "now": None}
    print("| method | checkout | documents/s | ms per step | GPU busy | started | waits |")
    print("|---|---|---|---|---|---|---|")
    for method in chosen.methods.split(","):
        for name, source in checkouts.items():
            row = rows.setdefault(method, {})[name] = measure_in(source, method)
            print(
                f"| {method} | {name} | {row['documents_per_second']:,.0f} | {row['ms']:.1f} "
                f"| {row['busy']:.0%} | {row['started']:.0f} | {row['waits']:.1f} |",
                flush=True,
            )
    if chosen.out:
        chosen.out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def measure_in(source: Path | None, method: str) -> dict[str, float]:
    """Measure in a new process, with another checkout if one is given."""
    environment = dict(os.environ)
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    command = [sys.executable, *sys.argv, "--one", method]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(method: str, chosen: argparse.Namespace) -> dict[str, float]:
    import torch

    from setrnn.objectives import find_objective
    from setrnn.training.optimizer import set_learning_rate

    trainer = make_trainer(method, chosen)
    objective = find_objective(trainer._objective_name())
    batches = trainer._batches()
    set_learning_rate(trainer.optimizer, 0.5, trainer.settings)
    trainer.network.train()

    def wait() -> None:
        if chosen.device == "cuda":
            torch.cuda.synchronize()

    def run(first: int, n_steps: int) -> int:
        rows = [batches[number % len(batches)] for number in range(first, first + n_steps)]
        n_documents = 0
        for pieces in trainer_prefetch(trainer, rows):
            trainer._step(pieces, objective)
            n_documents += sum(len(each) for each in pieces)
        wait()
        return n_documents

    run(0, chosen.warm)
    start = time.perf_counter()
    n_documents = run(chosen.warm, chosen.steps)
    seconds = time.perf_counter() - start
    activities = [torch.profiler.ProfilerActivity.CPU]
    if chosen.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiled:
        run(chosen.warm, chosen.profiled)
    events = profiled.events()
    on_gpu = [each for each in events if each.device_type == torch.autograd.DeviceType.CUDA]
    spans = sorted((each.time_range.start, each.time_range.end) for each in on_gpu)
    busy = covered(spans) / chosen.profiled / 1e3  # ms per step
    names = [each.name for each in events]
    ms = seconds / chosen.steps * 1e3
    return {
        "documents_per_second": n_documents / seconds,
        "ms": ms,
        "busy_ms": busy,
        "busy": busy / ms,
        "started": sum("Launch" in name for name in names) / chosen.profiled,
        "waits": sum(name in WAITS for name in names) / chosen.profiled,
    }


def covered(spans: list[tuple[float, float]]) -> float:
    """Return the time that is covered by at least one span."""
    total, end = 0.0, float("-inf")
    for start, stop in spans:
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def make_trainer(method: str, chosen: argparse.Namespace) -> Any:  # noqa: ANN401
    import torch

    from setrnn.config import load_config
    from setrnn.data.cache import Source, open_prepared
    from setrnn.methods import find_method
    from setrnn.model.network import make_network
    from setrnn.training.loop import Trainer
    from setrnn.training.schedule import fit_to_data

    config = load_config("default", None, ["training.batch_size=128", *chosen.settings])
    prepared = open_prepared(Source(chosen.data), config.text)
    config = fit_to_data(config, prepared)
    found = find_method(method)
    network = make_network(prepared, config, found.decoder)
    device = torch.device(chosen.device)
    return Trainer(network.to(device), prepared, config, found, device)


def trainer_prefetch(trainer: Any, rows: list[Any]) -> Any:  # noqa: ANN401
    from setrnn.data.streaming import prefetch

    return prefetch(trainer._make_batch, rows)


if __name__ == "__main__":
    main()
