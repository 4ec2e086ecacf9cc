"""The time of a comparison after training, against another checkout, in turns within one run.

    python benchmarks/measuring.py PREPARED MODEL... --before OTHER_CHECKOUT/src [--documents 512]

PREPARED is a prepared folder (`setrnn data prepare`), each MODEL a model trained on it; a mixture
(`setrnn mix`) comes after its members, and is compared with the sum of all models before it. The
work is all that `setrnn compare` does with a trained model: measuring by every rule on valid and
test, speed, label orders, explained documents, acceptance of labels. A process per checkout loads
the model once; the two then take turns, and the medians of their processor times are compared.
`reads` is how often networks encode a document, per document of valid and test: on a GPU, time
follows it more than arithmetic. `equal` says whether the records are the same, digit for digit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from checkouts import list_sources, start_worker, take_turns

MIXTURE = "mixture"


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--before", type=Path, help="the sources to compare with")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--documents", type=int, default=512, help="of valid and of test")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(given)
    sources = list_sources(arguments.before)
    prepared, n_documents = arguments.prepared, arguments.documents
    rows: list[dict[str, Any]] = []
    for model in arguments.models:
        workers = {
            name: start_worker(__file__, source, prepared, model, n_documents, n_threads=1)
            for name, source in sources.items()
        }
        row = {"model": model.name} | _compare_turns(workers, arguments.turns)
        for worker in workers.values():
            worker.communicate(timeout=60)
        if row["method"] == MIXTURE and rows:
            for name in sources:
                total = sum(each[f"{name}, CPU s"] for each in rows)
                row[f"{name}, of the sum"] = round(row[f"{name}, CPU s"] / total, 2)
        rows.append(row)
        print(json.dumps(row), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


def _compare_turns(workers: dict[str, Any], n_turns: int) -> dict[str, Any]:
    found = take_turns(workers, "", n_turns)
    row: dict[str, Any] = {"method": found["now"][0]["method"]}
    for name, answers in found.items():
        row[f"{name}, CPU s"] = round(statistics.median(each["cpu"] for each in answers), 2)
        row[f"{name}, s"] = round(statistics.median(each["wall"] for each in answers), 2)
        row[f"{name}, reads"] = round(answers[0]["reads"], 2)
    if "before" in found:
        row["ratio"] = round(row["before, CPU s"] / row["now, CPU s"], 2)
        row["equal"] = found["now"][0]["record"] == found["before"][0]["record"]
    return row


class _Worker:
    """One checkout with one model."""

    def __init__(self, prepared: str, model: str, n_documents: int) -> None:
        import setrnn
        from setrnn.comparison import run as comparison_run
        from setrnn.data.prepared import Prepared
        from setrnn.model.network import Network

        self.run = comparison_run
        self.tagger = setrnn.load(Path(model), device="cpu")
        notes = {"training_seconds": 0.0} | self.tagger.notes
        self.tagger = replace(self.tagger, notes=notes)
        self.prepared, self.n_documents, self.n_read = Path(prepared), n_documents, 0
        comparison_run._train = comparison_run._mix = lambda *task: self.tagger
        split, encode = Prepared.split, Network.encode

        def cut(prepared: Any, name: str) -> Any:  # noqa: ANN401
            part = split(prepared, name)
            n = min(n_documents, len(part))
            rows = {each: getattr(part, each).rows(0, n) for each in ("tokens", "labels")}
            return part if name == "train" else replace(part, **rows)

        def count(network: Any, batch: Any) -> Any:  # noqa: ANN401
            self.n_read += len(batch.tokens)
            return encode(network, batch)

        Prepared.split, Network.encode = cut, count

    def measure(self) -> dict[str, Any]:
        self.n_read = 0
        start, cpu = time.perf_counter(), time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            task = self.run.Task(
                self.prepared, Path(folder), self.tagger.method, 0, self.tagger.config, "cpu"
            )
            record = self.run.run(task)
        answer = {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}
        for scores in (each for rules in record.scores.values() for each in rules.values()):
            del scores["documents_per_second"]
            for name, value in scores.items():
                scores[name] = round(value, 6) if isinstance(value, float) else value
        values = json.dumps([record.scores, asdict(record.test), record.cases])
        reads = self.n_read / (2 * self.n_documents)
        return answer | {"method": record.method, "record": values, "reads": reads}


def _serve() -> None:
    prepared, model, n_documents = sys.argv[2:5]
    worker = _Worker(prepared, model, int(n_documents))
    for _ in sys.stdin:
        print(json.dumps(worker.measure()), flush=True)


if __name__ == "__main__":
    _serve() if sys.argv[1:2] == ["--worker"] else main()
