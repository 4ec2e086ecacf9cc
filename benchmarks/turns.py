"""Speed of the networks on a CPU, against another checkout, in turns within one run.

    python benchmarks/turns.py PREPARED MODEL... --before OTHER_CHECKOUT/src [--threads 1 2]

PREPARED is a prepared folder (`setrnn data prepare`), each MODEL a network trained on it. A process
per checkout loads the model once; the two then take short turns at the same work, and the medians
of their turns are compared: what else the machine does meets both. `equal` says whether predicted
sets, their probabilities and the weights after the steps of training have the same bits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from checkouts import list_sources, start_worker, take_turns

WORK = ("set", "sequence", "one", "training")
STEPS = 6  # of training, per turn


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--before", type=Path, help="the sources to compare with")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--documents", type=int, default=256, help="valid documents per turn")
    parser.add_argument("--work", nargs="+", choices=WORK, default=list(WORK))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(given)
    sources = list_sources(arguments.before)
    prepared, n_documents = arguments.prepared, arguments.documents
    rows = []
    for model in arguments.models:
        for n_threads in arguments.threads:
            workers = {
                name: start_worker(__file__, source, prepared, model, n_documents, n_threads)
                for name, source in sources.items()
            }
            for work in arguments.work:
                row = _compare_turns(workers, work, arguments.turns)
                rows.append({"model": model.name, "threads": n_threads, "work": work} | row)
                print(json.dumps(rows[-1]), flush=True)
            for worker in workers.values():
                worker.communicate(timeout=60)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


def _compare_turns(workers: dict[str, Any], work: str, n_turns: int) -> dict[str, Any]:
    found = take_turns(workers, work, n_turns + 1)  # the first is not counted
    row: dict[str, Any] = {}
    for name, answers in found.items():
        row[name] = round(statistics.median(each["value"] for each in answers[1:]), 2)
        row[f"{name}, CPU s"] = round(statistics.median(each["cpu"] for each in answers[1:]), 3)
    if "before" in found:
        row["ratio"] = round(row["now"] / row["before"], 2)
        one, other = (json.loads(found[name][-1]["bits"]) for name in ("now", "before"))
        row["equal"] = one == other
        row["equal sets"] = found["now"][-1]["sets"] == found["before"][-1]["sets"]
        if isinstance(one, list):
            row["largest difference"] = float(np.abs(np.subtract(one, other)).max())
    return row


class _Worker:
    """One checkout with one model."""

    def __init__(self, prepared: str, model: str, n_documents: int) -> None:
        import setrnn
        from setrnn.config import Config, TrainingSettings
        from setrnn.data.batches import even_rows
        from setrnn.data.cache import Source, open_prepared
        from setrnn.methods import find_method

        tagger = setrnn.load(Path(model), device="cpu")
        self.method, self.system = find_method(tagger.method), tagger.system
        self.config = Config(training=TrainingSettings(epochs=10))
        self.prepared = open_prepared(Source(prepared), self.config.text)
        tokens = self.prepared.split("valid").tokens
        self.tokens = tokens.take(even_rows(len(tokens), n_documents))
        near = np.argsort(np.abs(tokens.lengths - 100), kind="stable")[:20]
        self.single = [tokens.take(near[place : place + 1]) for place in range(len(near))]
        self.trainer: Any = None

    def set(self) -> tuple[float, str, str]:
        return self._predict("sets")

    def sequence(self) -> tuple[float, str, str]:
        return self._predict("sequences")

    def _predict(self, source: str) -> tuple[float, str, str]:
        start = time.perf_counter()
        found = self.system.candidates(self.tokens, 1, source)
        seconds = time.perf_counter() - start
        return len(self.tokens) / seconds, *_bits(found)

    def one(self) -> tuple[float, str, str]:
        seconds, bits = [], []
        for tokens in self.single:
            start = time.perf_counter()
            found = self.system.candidates(tokens, 1)
            seconds.append(time.perf_counter() - start)
            bits.append(_bits(found))
        log_probs = json.dumps([json.loads(each[0])[0] for each in bits])
        return 1000 * statistics.median(seconds), log_probs, json.dumps([each[1] for each in bits])

    def training(self) -> tuple[float, str, str]:
        """Take the same first steps in every turn, from the weights that the turn before left."""
        import torch

        from setrnn.objectives import find_objective
        from setrnn.training.optimizer import set_learning_rate
        from setrnn.training.schedule import fit_to_data
        from setrnn.training.start import TrainOptions, make_trainer

        if self.trainer is None:
            config = fit_to_data(self.config, self.prepared)
            self.trainer = make_trainer(self.method, self.prepared, config, TrainOptions("cpu"))
            torch.manual_seed(0)
            self.trainer.network.load_state_dict(self.system.network.state_dict())
            self.trainer.network.train()
        trainer = self.trainer
        set_learning_rate(trainer.optimizer, 0.5, trainer.settings)
        objective, n_documents = find_objective(trainer._objective_name()), 0
        with _threads_of(trainer):
            start = time.perf_counter()
            for rows in trainer._batches()[:STEPS]:
                trainer._step(trainer._make_batch(rows), objective)
                n_documents += len(rows)
            seconds = time.perf_counter() - start
        weights = [each.detach().numpy().tobytes() for each in trainer.network.parameters()]
        weights += [
            each.detach().numpy().tobytes() for each in trainer.keeper.average.network.parameters()
        ]
        return n_documents / seconds, json.dumps(_hash(weights)), "the weights"


def _threads_of(trainer: Any) -> Any:  # noqa: ANN401
    """Return the threads that a run of either checkout trains with."""
    from setrnn.model import devices

    has_pieces = hasattr(trainer, "gradients")
    return trainer.gradients.threads() if has_pieces else devices.patient_threads()


def _bits(found: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return the best sets with their log-probabilities, and the sets alone."""
    sets = [sorted(int(each) for each in row if each >= 0) for row in found.labels[:, 0]]
    return json.dumps(found.log_probs[:, 0].tolist()), json.dumps(sets)


def _hash(parts: list[bytes]) -> str:
    return hashlib.blake2b(b"".join(parts), digest_size=16).hexdigest()


def _serve() -> None:
    prepared, model, n_documents = sys.argv[2:5]
    worker = _Worker(prepared, model, int(n_documents))
    for line in sys.stdin:
        before = time.process_time()
        value, bits, sets = getattr(worker, line.strip())()
        answer = {"value": value, "cpu": time.process_time() - before, "bits": bits, "sets": sets}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve() if sys.argv[1:2] == ["--worker"] else main()
