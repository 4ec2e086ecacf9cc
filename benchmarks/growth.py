"""Measure how time and memory grow with the work.

    python benchmarks/growth.py [--quick] [--panels labels documents ...] [--json FILE]

Made-up documents, small networks, one thread. Every point is a process of its own, which does the
same work for 40 documents before it measures. Its time is that of the processor, its memory the
peak of the process less the peak before the work. An exponent is the slope of log(time) or
log(memory) over log(size), by least squares over the upper half of the points: 1 for what grows
with the size, 0 for what is constant. "Expected" is what the algorithm takes at most for large
sizes; fixed costs make the measured exponent smaller.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import setrnn
from harness import SMALL, SOURCE, Worker, make_parser, print_head, print_row, save

SETTINGS = [*SMALL, "training.batch_size=32", "training.learning_rate=0.02", "text.max_words=5000"]
SETTINGS += ["training.valid_documents=20"]
VOCABULARY = 5_000
PANELS = ("labels", "labels per set", "words per document", "beam width", "documents")


@dataclass(frozen=True)
class Documents:
    """Made-up documents: how many, and how large."""

    n_documents: int = 1_000
    n_labels: int = 50
    set_size: int = 3
    n_words: int = 30

    def write(self, file: Path) -> str:
        """Write JSON Lines. Each label of a document has a word of its own in the text."""
        random = np.random.default_rng(0)
        n_chosen = self.n_documents * self.set_size
        n_turns = -(-n_chosen // self.n_labels)  # in each, every label is used once
        chosen = np.concatenate([random.permutation(self.n_labels) for _ in range(n_turns)])
        rows = chosen[:n_chosen].reshape(self.n_documents, self.set_size)
        with file.open("w", encoding="utf-8") as stream:
            for row in rows:
                labels = np.unique(row).tolist()
                words = (VOCABULARY * random.random(self.n_words) ** 3).astype(int).tolist()
                text = [f"word{word}" for word in words]
                text[: len(labels)] = [f"topic{label}" for label in labels]
                record = {"text": " ".join(text), "labels": [f"label{label}" for label in labels]}
                stream.write(json.dumps(record) + "\n")
        return str(file)


@dataclass(frozen=True)
class Curve:
    """A row of the table: what is measured, for which sizes."""

    panel: str  # what grows
    name: str
    action: str
    expected: tuple[float, float]  # the exponents of time and memory
    points: list[tuple[int, dict[str, Any]]]  # the size, and the arguments of the action


def plan(folder: Path, panels: list[str], quick: bool) -> Iterator[Curve]:
    """Yield the curves. Models that predict were trained by the curve before."""
    tiny = Documents(n_documents=40).write(folder / "tiny.jsonl")

    def points(method: str, files: dict[int, str], **more: int) -> list[tuple[int, dict[str, Any]]]:
        common = {"method": method, "tiny": tiny, **more}
        return [
            (size, {**common, "file": file, "model": f"{file}-{method}"})
            for size, file in files.items()
        ]

    trained: list[tuple[str, tuple[int, ...], list[str], Callable[[int], Documents]]] = [
        ("labels", (50, 500, 5_000), ["br", "set-rnn-exact", "set-rnn"],
         lambda n: Documents(n_labels=n, n_documents=2_000)),
        ("labels per set", (2, 5, 10, 20), ["set-rnn-exact", "set-rnn"],
         lambda n: Documents(set_size=n, n_documents=600)),
        ("words per document", (50, 500, 5_000), ["set-rnn", "br"],
         lambda n: Documents(n_words=n, n_documents=300)),
    ]  # fmt: skip
    for panel, sizes, methods, documents in trained:
        if panel not in panels:
            continue
        if quick:
            sizes, methods = sizes[:2], methods[:1]
        files = {n: documents(n).write(folder / f"{panel}-{n}.jsonl") for n in sizes}
        for method in methods:
            found = points(method, files, most=300)
            yield Curve(panel, f"{method}, train", "train", (1, 1), found)
            yield Curve(panel, f"{method}, predict", "predict", (1, 1), found)

    if "beam width" in panels:
        file = Documents(n_documents=600, set_size=4).write(folder / "beam.jsonl")
        for method, expected in (("set-rnn", (2, 2)), ("set-rnn-exact", (1, 1)))[: 2 - quick]:
            ((_, common),) = points(method, {0: file}, most=100)
            measure("train", common)
            widths = (3, 12) if quick else (1, 3, 6, 12, 24, 48)
            found = [(width, {**common, "beam_width": width}) for width in widths]
            yield Curve("beam width", f"{method}, predict", "predict", expected, found)

    if "documents" in panels:
        sizes = (10**3, 10**4) if quick else (10**3, 10**4, 10**5, 10**6)
        files = {n: Documents(n).write(folder / f"{n}.jsonl") for n in sizes}
        found = points("br", files)
        measure("train", found[0][1])
        found = [(size, {**each, "model": found[0][1]["model"]}) for size, each in found]
        yield Curve("documents", "prepare", "prepare", (1, 0), found)
        yield Curve("documents", "br, predict a stream", "predict", (1, 0), found)


def measure(action: str, arguments: dict[str, Any]) -> dict[str, float]:
    """Run an action in a process of its own; return its seconds and megabytes."""
    worker = Worker(SOURCE, "--worker")
    found = worker.ask(action=action, **arguments)
    worker.close()
    return found


def run_action(action: str, arguments: dict[str, Any]) -> None:
    """Run an action twice, and print the seconds and megabytes of the second time."""
    make = {"prepare": _prepare, "train": _train, "predict": _predict}[action]
    warm = {**arguments, "file": arguments["tiny"]}
    if action == "train":
        warm["model"] += "-tiny"
    make(warm)()
    work = make(arguments)
    before, start = _peak_memory(), time.process_time()
    work()
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "megabytes": _peak_memory() - before}))


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def _prepare(arguments: dict[str, Any]) -> Callable[[], object]:
    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            setrnn.prepare(arguments["file"], out=Path(folder) / "prepared")

    return work


def _train(arguments: dict[str, Any]) -> Callable[[], object]:
    data = setrnn.prepare(
        arguments["file"], out=arguments["model"] + ".prepared", settings=SETTINGS
    )
    return lambda: setrnn.train(
        data.folder, arguments["method"], out=arguments["model"], settings=SETTINGS, device="cpu"
    )


def _predict(arguments: dict[str, Any]) -> Callable[[], object]:
    tagger = setrnn.load(arguments["model"], "cpu")
    if "beam_width" in arguments:
        tagger = tagger.with_beam_width(arguments["beam_width"])

    def work() -> None:
        with Path(arguments["file"]).open(encoding="utf-8") as stream:
            lines = islice(stream, arguments.get("most"))
            for _ in tagger.tag_stream(((json.loads(line)["text"], ()) for line in lines), "set"):
                pass

    return work


def find_exponent(sizes: list[int], values: list[float]) -> float:
    """Return the slope of log(value) over log(size), over the upper half of the points."""
    n_used = max(-(-len(sizes) // 2), 2)
    x, y = np.log(sizes[-n_used:]), np.log(np.maximum(values[-n_used:], 1e-3))
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="without the largest sizes")
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=list(PANELS))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        arguments = json.loads(sys.stdin.readline())
        run_action(arguments.pop("action"), arguments)
        return
    rows = []
    print_head("what grows", "", "sizes", "seconds", "exponent", "MB added", "exponent")
    with tempfile.TemporaryDirectory() as folder:
        for curve in plan(Path(folder), chosen.panels, chosen.quick):
            sizes = [size for size, _ in curve.points]
            points = [measure(curve.action, each) for _, each in curve.points]
            rows.append({"panel": curve.panel, "name": curve.name, "sizes": sizes, "found": points})
            cells = [" / ".join(f"{size:,}" for size in sizes)]
            for name, expected, digits in zip(points[0], curve.expected, (2, 0), strict=True):
                values = [point[name] for point in points]
                cells.append(" / ".join(f"{value:,.{digits}f}" for value in values))
                cells.append(f"{find_exponent(sizes, values):.2f} ({expected:g})")
            print_row(curve.panel, curve.name, *cells)
    save(rows, chosen.json)


if __name__ == "__main__":
    main()
