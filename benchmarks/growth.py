"""Measure how time and memory grow with the work, and draw them as one figure.

    python benchmarks/growth.py [--quick] [--out growth.svg] [--panels "labels" "documents" ...]

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
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

SETTINGS = [
    "vectors.source=none",
    "vectors.dimensions=32",
    "model.encoder_units=32",
    "model.decoder_units=32",
    "model.decoder_layers=1",
    "model.wide=off",
    "search.beam_width=6",
    "training.epochs=3",
    "training.batch_size=32",
    "training.learning_rate=0.02",
    "training.valid_documents=20",
    "text.max_words=5000",
]
VOCABULARY = 5_000
PANELS = ("labels", "labels per set", "words per document", "beam width", "documents")


@dataclass(frozen=True)
class Documents:
    """Made-up documents: how many, and how large."""

    n_documents: int = 1_000
    n_labels: int = 50
    set_size: int = 3
    n_words: int = 30

    def write(self, file: Path) -> Path:
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
        return file


@dataclass(frozen=True)
class Curve:
    """One line of the figure: what is measured, for which sizes."""

    panel: str  # what grows
    name: str
    action: str
    expected: tuple[float, float]  # the exponents of time and memory
    points: list[tuple[int, dict[str, Any]]]  # the size, and the arguments of the action


def plan(folder: Path, panels: list[str], quick: bool, most_documents: int) -> Iterator[Curve]:
    """Yield the curves. Models that predict were trained by the curve before."""

    def data(name: object, **sizes: int) -> str:
        file = folder / f"{name}.jsonl"
        return str(file if file.exists() else Documents(**sizes).write(file))

    def place(*parts: object) -> str:
        return str(folder / "-".join(map(str, parts)))

    tiny = data("tiny", n_documents=40)

    def points(method: str, files: dict[int, str], **more: int) -> list[tuple[int, dict[str, Any]]]:
        common = {"method": method, "tiny": tiny, **more}
        return [
            (size, {**common, "file": file, "model": f"{file}-{method}"})
            for size, file in files.items()
        ]

    trained: list[tuple[str, tuple[int, ...], list[str], Callable[[int], dict[str, int]]]] = [
        ("labels", (50, 500, 5_000), ["br", "set-rnn-exact", "set-rnn"],
         lambda n: {"n_labels": n, "n_documents": 2_000}),
        ("labels per set", (2, 5, 10, 20), ["set-rnn-exact", "set-rnn"],
         lambda n: {"set_size": n, "n_documents": 600}),
        ("words per document", (50, 500, 5_000), ["set-rnn", "br"],
         lambda n: {"n_words": n, "n_documents": 300}),
    ]  # fmt: skip
    for panel, values, methods, sizes in trained:
        if panel not in panels:
            continue
        if quick:
            values, methods = values[:2], methods[:1]
        files = {n: data(f"{panel}-{n}", **sizes(n)) for n in values}
        for method in methods:
            found = points(method, files, most=300)
            yield Curve(panel, f"{method}, train", "train", (1, 1), found)
            yield Curve(panel, f"{method}, predict", "predict", (1, 1), found)

    if "beam width" in panels:
        file = data("beam", n_documents=600, set_size=4)
        for method, expected in (("set-rnn", (2, 2)), ("set-rnn-exact", (1, 1)))[: 2 - quick]:
            ((_, common),) = points(method, {0: file}, most=100)
            measure("train", common)
            widths = (3, 12) if quick else (1, 3, 6, 12, 24, 48)
            found = [(width, {**common, "beam_width": width}) for width in widths]
            yield Curve("beam width", f"{method}, predict", "predict", expected, found)

    if "documents" in panels:
        n_documents = [n for n in (10**3, 10**4, 10**5, 10**6) if n <= most_documents]
        files = {n: data(n, n_documents=n) for n in n_documents[: 2 if quick else None]}
        found = points("br", files)
        measure("train", found[0][1])
        found = [(size, {**each, "model": found[0][1]["model"]}) for size, each in found]
        yield Curve("documents", "prepare", "prepare", (1, 0), found)
        yield Curve("documents", "br, predict a stream", "predict", (1, 0), found)


def measure(action: str, arguments: dict[str, Any]) -> dict[str, float]:
    """Run an action in a process of its own; return its seconds and megabytes."""
    command = [sys.executable, __file__, "--action", action, json.dumps(arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{action} {arguments} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_action(action: str, arguments: dict[str, Any]) -> None:
    """Run an action, and print its seconds and megabytes."""
    make = {"prepare": _prepare, "train": _train, "predict": _predict}[action]
    warm = {**arguments, "file": arguments["tiny"]}
    if action == "train":
        warm["model"] += "-tiny"
    make(warm)()
    work = make(arguments)
    before = _peak_memory()
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "megabytes": _peak_memory() - before}))


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def _prepare(arguments: dict[str, Any]) -> Callable[[], None]:
    from setrnn.config import TextSettings
    from setrnn.data.cache import Source, open_prepared

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            open_prepared(Source(arguments["file"]), TextSettings(), Path(folder) / "prepared")

    return work


def _train(arguments: dict[str, Any]) -> Callable[[], None]:
    import torch

    from setrnn.config import load_config
    from setrnn.data.cache import Source, open_prepared
    from setrnn.methods import find_method
    from setrnn.tagging.tagger import Tagger
    from setrnn.training.start import TrainOptions, train_system

    torch.set_num_threads(1)
    config, method = load_config("default", None, SETTINGS), find_method(arguments["method"])
    place = Path(arguments["model"] + ".prepared")
    prepared = open_prepared(Source(arguments["file"]), config.text, place)

    def work() -> None:
        trained = train_system(method, prepared, config, TrainOptions("cpu"))
        tagger = Tagger.trained_on(prepared, method.name, config, trained.system, {})
        tagger.save(Path(arguments["model"]))

    return work


def _predict(arguments: dict[str, Any]) -> Callable[[], None]:
    import torch

    import setrnn

    torch.set_num_threads(1)
    tagger = setrnn.load(arguments["model"], "cpu")
    if "beam_width" in arguments:
        tagger = tagger.with_beam_width(arguments["beam_width"])

    def work() -> None:
        with Path(arguments["file"]).open(encoding="utf-8") as stream:
            lines = islice(stream, arguments.get("most"))
            documents = ((json.loads(line)["text"], ()) for line in lines)
            for _ in tagger.tag_stream(documents, "set"):
                pass

    return work


def find_exponent(sizes: list[int], values: list[float]) -> float:
    """Return the slope of log(value) over log(size), over the upper half of the points."""
    n_used = max(-(-len(sizes) // 2), 2)
    x, y = np.log(sizes[-n_used:]), np.log(np.maximum(values[-n_used:], 1e-3))
    return float(np.polyfit(x, y, 1)[0])


def draw(found: list[tuple[Curve, list[dict[str, float]]]], file: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "growth"})
    from matplotlib import pyplot

    panels = list(dict.fromkeys(curve.panel for curve, _ in found))
    figure, axes = pyplot.subplots(2, len(panels), figsize=(4 * len(panels), 7), squeeze=False)
    for curve, points in found:
        for row, measured in enumerate(("seconds", "megabytes")):
            sizes = [size for size, _ in curve.points]
            values = [max(point[measured], 0.1 if row else 1e-3) for point in points]
            exponent = find_exponent(sizes, values)
            label = f"{curve.name}: {exponent:.2f} ({curve.expected[row]:g})"
            axis = axes[row, panels.index(curve.panel)]
            axis.loglog(sizes, values, marker="o", markersize=3, label=label)
    for column, panel in enumerate(panels):
        for row, measured in enumerate(("processor seconds", "megabytes added")):
            axes[row, column].set(xlabel=panel, ylabel=measured)
            axes[row, column].legend(fontsize=7, title="exponent (expected)", title_fontsize=7)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="without the largest sizes")
    parser.add_argument("--out", type=Path, default=Path("growth.svg"))
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=list(PANELS))
    parser.add_argument("--most-documents", type=int, default=10**6)
    parser.add_argument("--action", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.action:
        run_action(arguments.action[0], json.loads(arguments.action[1]))
        return
    found = []
    print(
        "| what grows | | sizes | processor seconds | exponent (expected) | MB added | exponent |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for curve in plan(
            Path(folder), arguments.panels, arguments.quick, arguments.most_documents
        ):
            points = [measure(curve.action, each) for _, each in curve.points]
            found.append((curve, points))
            sizes = [size for size, _ in curve.points]
            cells = [" / ".join(f"{size:,}" for size in sizes)]
            for measured, expected, digits in zip(
                ("seconds", "megabytes"), curve.expected, (2, 0), strict=True
            ):
                values = [point[measured] for point in points]
                cells.append(" / ".join(f"{value:,.{digits}f}" for value in values))
                cells.append(f"{find_exponent(sizes, values):.2f} ({expected:g})")
            print(f"| {curve.panel} | {curve.name} | {' | '.join(cells)} |", flush=True)
            draw(found, arguments.out)


if __name__ == "__main__":
    main()
