"""Speed of training and prediction, on a CPU or a GPU, here and in another checkout.

    python benchmarks/speed.py predict PREPARED MODEL... [--before OTHER_CHECKOUT/src]
    python benchmarks/speed.py train PREPARED METHOD... [--orders 1,4,12,48] [--preset paper]
        [--before OTHER_CHECKOUT/src] [--device cuda] [--steps 6] [--set KEY=VALUE]...

PREPARED is a prepared folder (`setrnn data prepare`). Each MODEL, trained on it, tags documents of
its valid part by its own rule; a new network of each METHOD takes steps of training, with each
number of orders K. All take short turns one after the other, and so do the checkouts, a process
each: what else the machine does meets all. The table has medians: documents per second, and the
cost beside the first row. `equal` says whether the predicted sets, or the bits of the weights after
the steps, are the same in both checkouts. On a CPU with one thread, the time is that of the
process.

The paper says that its system and those of Vinyals et al. are at most K times slower than a vanilla
RNN, and that Vinyals-RNN-uniform is faster than the others by 1.5:

    python benchmarks/speed.py train DATA seq2seq-rnn vinyals-uniform vinyals-max set-rnn \
        --orders 1,4,12,48 --preset paper
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import setrnn
from harness import (
    SOURCE,
    Worker,
    add_settings,
    make_parser,
    print_head,
    print_row,
    save,
    split_numbers,
)
from setrnn.config import load_config
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import even_rows
from setrnn.data.streaming import prefetch
from setrnn.methods import find_method
from setrnn.tagging.learn.data import fit_to_data
from setrnn.training.optimizer import set_learning_rate
from setrnn.training.start import TrainOptions, make_trainer

Turn = Callable[[], tuple[int, float, list[bytes]]]  # documents, seconds, results


def main(given: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("work", choices=("predict", "train"))
    parser.add_argument("prepared", type=Path)
    parser.add_argument("names", nargs="+", help="models or methods")
    parser.add_argument("--orders", type=split_numbers, default=[0], help="of training; 0: default")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--before", type=Path, help="the sources to compare with")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--documents", type=int, default=256, help="predicted per turn")
    parser.add_argument("--steps", type=int, default=6, help="of training per turn")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    add_settings(parser)
    chosen = parser.parse_args(given)
    if chosen.worker:
        answer_in_turns(chosen)
        return
    workers = {"now": Worker(SOURCE, *sys.argv[1:], "--worker", threads=chosen.threads)}
    if chosen.before:
        workers["before"] = Worker(chosen.before, *sys.argv[1:], "--worker", threads=chosen.threads)
    compare(chosen, workers)
    for worker in workers.values():
        worker.close()


def compare(chosen: argparse.Namespace, workers: dict[str, Worker]) -> None:
    """Let all work in turns, and print the table."""
    works = [(name, n_orders) for name in chosen.names for n_orders in chosen.orders]
    answers = {(*work, checkout): [] for work in works for checkout in workers}
    for turn in range(chosen.turns + 1):  # the first is not counted
        for name, n_orders, checkout in list(answers) if turn % 2 else reversed(answers):
            found = workers[checkout].ask(name=name, orders=n_orders)
            answers[name, n_orders, checkout].append(found)
    print_head(chosen.work, "K", "documents/s", "cost", "before", "ratio", "equal")
    rows = []
    for name, n_orders in works:
        speeds = {
            checkout: statistics.median(
                each["speed"] for each in answers[name, n_orders, checkout][1:]
            )
            for checkout in workers
        }
        row = {"name": name, "orders": n_orders, "now": round(speeds["now"], 2)}
        rows.append(row)
        row["cost"] = round(rows[0]["now"] / speeds["now"], 2)
        if "before" in workers:
            last = [answers[name, n_orders, checkout][-1]["bits"] for checkout in workers]
            row["before"] = round(speeds["before"], 2)
            row |= {"ratio": round(speeds["now"] / speeds["before"], 2), "equal": len({*last}) == 1}
        print_row(*row.values(), *[""] * (7 - len(row)))
    save(rows, chosen.json)


def answer_in_turns(chosen: argparse.Namespace) -> None:
    """Do the work of each line of the input; answer with its speed and a hash of its results."""
    made: dict[str, Turn] = {}
    for line in sys.stdin:
        if line not in made:
            work = json.loads(line)
            made[line] = (
                make_prediction(work["name"], chosen)
                if chosen.work == "predict"
                else make_training(work["name"], work["orders"], chosen)
            )
        n_documents, seconds, results = made[line]()
        bits = hashlib.blake2b(b"".join(results), digest_size=16).hexdigest()
        print(json.dumps({"speed": n_documents / seconds, "bits": bits}), flush=True)


def read_clock(chosen: argparse.Namespace) -> float:
    """Return the time: on a CPU with one thread that of this process, whatever else runs."""
    if torch.cuda.is_available() and chosen.device != "cpu":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time() if chosen.threads == 1 else time.perf_counter()


def make_prediction(model: str, chosen: argparse.Namespace) -> Turn:
    tagger = setrnn.load(Path(model), device=chosen.device)
    tokens = Prepared(chosen.prepared).split("valid").tokens
    tokens = tokens.take(even_rows(len(tokens), chosen.documents))

    def predict() -> tuple[int, float, list[bytes]]:
        start = read_clock(chosen)
        found = list(tagger.tag_tokens(tokens))
        seconds = read_clock(chosen) - start
        return len(tokens), seconds, [repr(each.labels).encode() for each in found]

    return predict


def make_training(name: str, n_orders: int, chosen: argparse.Namespace) -> Turn:
    method, prepared = find_method(name), Prepared(chosen.prepared)
    settings = [*chosen.settings, *([f"training.orders={n_orders}"] if n_orders else [])]
    config = fit_to_data(load_config(chosen.preset, None, settings), prepared)
    trainer = make_trainer(method, prepared, config, TrainOptions(chosen.device))
    trainer.network.train()
    set_learning_rate(trainer.optimizer, 0.5, trainer.settings)
    batches = trainer._batches()
    parameters = list(trainer.network.parameters())

    def train() -> tuple[int, float, list[bytes]]:
        """Take the same steps in every turn, from the weights that the turn before left."""
        rows = [batches[number % len(batches)] for number in range(chosen.steps)]
        with trainer.gradients.threads():
            start = read_clock(chosen)
            for pieces in prefetch(trainer._make_batch, rows):
                trainer._step(pieces)
            seconds = read_clock(chosen) - start
        weights = [each.detach().cpu().numpy().tobytes() for each in parameters]
        return sum(map(len, rows)), seconds, weights

    return train


if __name__ == "__main__":
    main()
