"""Measure the speed and peak memory of preparing data.

    python benchmarks/prepare_speed.py --documents 1000000
    python benchmarks/prepare_speed.py --documents 200000 --files 8 --workers 1 2

Writes JSON Lines files of artificial documents to a temporary folder, prepares them without word
vectors, and prints documents per second and the peak memory: by one process that uses all cores,
and then by the given numbers of workers, whose folders must have the same bytes. The seconds
include the start of the workers. A document has 100 words from a vocabulary of 200,000,
distributed by Zipf's law, with capitals, punctuation and numbers, and 3 of 100 labels.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

WORDS = 100


def _spell(rank: int, syllables: list[str]) -> str:
    """Spell a word: rarer words are longer, and the mean of a text is five letters."""
    spelled = syllables[rank % 65]
    while rank := rank // 65:
        spelled += syllables[rank % 65]
    return spelled + "n" * (len(spelled) > 2) + "st" * (len(spelled) > 4)


def write_documents(files: list[Path], n_documents: int) -> None:
    random = np.random.default_rng(0)
    syllables = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
    words = [_spell(rank, syllables) for rank in range(200_000)]
    words[:10] = ["the", "of", "and", "to", "in", "a", "is", "that", "for", "it"]
    words = [word.capitalize() if i % 17 == 16 else word for i, word in enumerate(words)]
    ranks = np.arange(1, len(words) + 1)
    cumulative = np.cumsum(1 / ranks)
    cumulative /= cumulative[-1]
    with ExitStack() as stack:
        streams = [stack.enter_context(file.open("w", encoding="utf-8")) for file in files]
        for start in range(0, n_documents, 10_000):
            n = min(10_000, n_documents - start)
            chosen = np.searchsorted(cumulative, random.random((n, WORDS)))
            labels = random.integers(0, 100, (n, 3))
            for row in range(n):
                text = [words[index] for index in chosen[row]]
                text[9] += ","
                text[25] = "1,234.5"
                text[49] += "."
                names = [f"label-{label}" for label in labels[row]]
                stream = streams[row % len(streams)]
                stream.write(json.dumps({"text": " ".join(text), "labels": names}) + "\n")


def prepare(data: str, out: Path, workers: int | None) -> dict[str, Any]:
    import setrnn

    start = time.perf_counter()
    prepared = setrnn.prepare(data, out=out, workers=workers)
    seconds = time.perf_counter() - start
    n_documents = prepared.description["n_documents"]["train"]
    # Of this process and of its children; the memory is that of the largest child.
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "workers": workers,
        "documents": n_documents,
        "seconds": round(seconds, 1),
        "documents_per_second": round(n_documents / seconds),
        "cpu_seconds": [round(each.ru_utime + each.ru_stime, 1) for each in used],
        "peak_memory_mb": [round(each.ru_maxrss / 1024) for each in used],
        "cores": os.cpu_count() or 0,
        "load_before": os.getloadavg()[0],
        "seals": hashlib.blake2b(json.dumps(prepared.description).encode()).hexdigest(),
    }


def measure(data: str, workers: int | None) -> dict[str, Any]:
    """Prepare data in a process of its own, which has not written the documents."""
    chosen = [] if workers is None else ["--workers", str(workers)]
    command = [sys.executable, __file__, "--data", data, *chosen]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(found.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    parser.add_argument("--data", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.data:  # the measured process
            workers = arguments.workers[0] if arguments.workers else None
            print(json.dumps(prepare(arguments.data, Path(folder), workers)))
            return
        files = [Path(folder) / f"{number}.jsonl" for number in range(arguments.files)]
        write_documents(files, arguments.documents)
        found = [measure(f"{folder}/*.jsonl", each) for each in (None, *arguments.workers)]
    is_same = len({each.pop("seals") for each in found}) == 1
    for each in found:
        print(json.dumps(each))
    print(json.dumps({"same_bytes": is_same}))


if __name__ == "__main__":
    main()
