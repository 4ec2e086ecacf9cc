"""Speed of training and prediction, on a CPU or a GPU, here and in another checkout.

    python benchmarks/speed.py PREPARED [MODEL...] [--methods set-rnn,set-rnn-exact]
        [--before OTHER_CHECKOUT/src] [--device cuda] [--threads 2] [--set KEY=VALUE]...

PREPARED is a prepared folder (`setrnn data prepare`). Each MODEL, trained on it, predicts the best
set of documents of its valid part; a new network of each method takes steps of training. With
--before, a process per checkout does the same work, in short turns one after the other, and the
medians of their turns are compared: what else the machine does meets both. `equal` says whether
the predicted sets with their probabilities, or the weights after the steps, have the same bits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--methods", default="", help="train a new network of each")
    parser.add_argument("--before", type=Path, help="the sources to compare with")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--documents", type=int, default=256, help="predicted per turn")
    parser.add_argument("--steps", type=int, default=6, help="of training per turn")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", nargs=2, metavar=("WORK", "NAME"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        work_in_turns(chosen)
        return
    works = [("predict", str(model)) for model in chosen.models]
    works += [("train", method) for method in chosen.methods.split(",") if method]
    rows = []
    for work, name in works:
        rows.append({"work": work, "name": name, **compare_turns(work, name, chosen)})
        print(json.dumps(rows[-1]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def compare_turns(work: str, name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Return documents per second of each checkout, their ratio, and whether bits are equal."""
    sources = {"before": chosen.before} if chosen.before else {}
    workers = {
        checkout: subprocess.Popen(
            [sys.executable, *sys.argv, "--worker", work, name],
            env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": str(chosen.threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for checkout, source in {**sources, "now": SOURCE}.items()
    }
    answers: dict[str, list[dict[str, Any]]] = {checkout: [] for checkout in workers}
    for turn in range(chosen.turns + 1):  # the first is not counted
        for checkout in list(workers) if turn % 2 else reversed(workers):
            asked, answered = workers[checkout].stdin, workers[checkout].stdout
            assert asked is not None
            assert answered is not None
            asked.write("\n")
            asked.flush()
            answers[checkout].append(json.loads(answered.readline()))
    for worker in workers.values():
        worker.communicate(timeout=60)
    row: dict[str, Any] = {
        checkout: round(statistics.median(each["speed"] for each in found[1:]), 2)
        for checkout, found in answers.items()
    }
    if chosen.before:
        row["ratio"] = round(row["now"] / row["before"], 2)
        row["equal"] = answers["now"][-1]["bits"] == answers["before"][-1]["bits"]
    return row


def work_in_turns(chosen: argparse.Namespace) -> None:
    """Do the work once per line of the input; answer with its speed and a hash of its results."""
    kind, name = chosen.worker
    turn = make_prediction(name, chosen) if kind == "predict" else make_training(name, chosen)
    for _ in sys.stdin:
        n_documents, seconds, results = turn()
        bits = hashlib.blake2b(b"".join(results), digest_size=16).hexdigest()
        print(json.dumps({"speed": n_documents / seconds, "bits": bits}), flush=True)


def make_prediction(model: str, chosen: argparse.Namespace) -> Any:  # noqa: ANN401
    import setrnn
    from setrnn.data.batches import even_rows
    from setrnn.data.prepared import Prepared

    system = setrnn.load(Path(model), device=chosen.device).system
    tokens = Prepared(chosen.prepared).split("valid").tokens
    tokens = tokens.take(even_rows(len(tokens), chosen.documents))

    def predict() -> tuple[int, float, list[bytes]]:
        start = time.perf_counter()
        found = system.candidates(tokens, 1)
        seconds = time.perf_counter() - start
        return len(tokens), seconds, [found.labels.tobytes(), found.log_probs.tobytes()]

    return predict


def make_training(name: str, chosen: argparse.Namespace) -> Any:  # noqa: ANN401
    import torch

    from setrnn.config import load_config
    from setrnn.data.prepared import Prepared
    from setrnn.data.streaming import prefetch
    from setrnn.methods import find_method
    from setrnn.objectives import find_objective
    from setrnn.training.optimizer import set_learning_rate
    from setrnn.training.schedule import fit_to_data
    from setrnn.training.start import TrainOptions, make_trainer

    method, prepared = find_method(name), Prepared(chosen.prepared)
    config = fit_to_data(load_config("default", None, chosen.settings), prepared)
    trainer = make_trainer(method, prepared, config, TrainOptions(chosen.device))
    trainer.network.train()
    set_learning_rate(trainer.optimizer, 0.5, trainer.settings)
    objective, batches = find_objective(trainer._objective_name()), trainer._batches()
    parameters = list(trainer.network.parameters())

    def train() -> tuple[int, float, list[bytes]]:
        """Take the same steps in every turn, from the weights that the turn before left."""
        rows = [batches[number % len(batches)] for number in range(chosen.steps)]
        with trainer.gradients.threads():
            start = time.perf_counter()
            for pieces in prefetch(trainer._make_batch, rows):
                trainer._step(pieces, objective)
            if chosen.device == "cuda":
                torch.cuda.synchronize()
            seconds = time.perf_counter() - start
        weights = [each.detach().cpu().numpy().tobytes() for each in parameters]
        return sum(map(len, rows)), seconds, weights

    return train


if __name__ == "__main__":
    main()
