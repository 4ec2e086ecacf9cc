"""Measure the memory of training on synthetic data of two sizes.

    python benchmarks/training_memory.py [--documents 20000 400000]

Each size is prepared, and a network is trained on some thousand documents in a process of its
own. Its memory is printed: the peak, and the part that is not mapped pages of the data, which
the operating system can reclaim.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from setrnn.config import Config
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.data.preparing import prepare
from setrnn.methods import find_method
from setrnn.plain_settings import load_config
from setrnn.progress import Note, Progress
from setrnn.training.start import TrainOptions, train_system

N_TRAINED = 6_000
SETTINGS = ["vectors.source=none", "vectors.dimensions=50", "model.encoder_units=64"]


class Enough(Exception):  # noqa: N818
    """Ends the training after enough documents."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, nargs=2, default=[20_000, 400_000])
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        print(_train(arguments.train))
        return
    with tempfile.TemporaryDirectory() as folder:
        for n_documents in arguments.documents:
            place = Path(folder) / str(n_documents)
            streams = {"train": lambda n=n_documents: _examples(n)}
            prepare(streams, place, "made-up", Config().text, source={})
            n_bytes = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
            command = [sys.executable, __file__, "--train", str(place)]
            peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            size = n_bytes / 2**20
            print(f"{n_documents:,} documents, {size:,.0f} MB prepared: {peak.strip()}")


def _examples(n_documents: int) -> Iterator[Example]:
    chance = random.Random(0)
    words = [f"word{number}" for number in range(5_000)]
    labels = [f"label{number}" for number in range(50)]
    for number in range(n_documents):
        text = " ".join(chance.choices(words, k=100))
        yield Example(str(number), text, tuple(chance.sample(labels, 1 + number % 3)))


def _train(folder: Path) -> str:
    """Train on some documents, and return the memory used."""

    def watch(event: Progress | Note) -> None:
        if isinstance(event, Progress) and event.n_done >= N_TRAINED:
            raise Enough

    options, config = TrainOptions("cpu", on_progress=watch), load_config("default", None, SETTINGS)
    with suppress(Enough):
        train_system(find_method("set-rnn"), Prepared(folder), config, options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    own = int(next(line for line in status.splitlines() if "RssAnon" in line).split()[1]) / 2**10
    return f"peak {peak:.0f} MB, {own:.0f} MB of its own"


if __name__ == "__main__":
    main()
