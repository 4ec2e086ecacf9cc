"""Measure the speed and peak memory of preparing data.

    python benchmarks/prepare_speed.py --documents 1000000

Writes a JSON Lines file of artificial documents to a temporary folder, prepares it without word
vectors, and prints documents per second and the peak memory. A document has 100 words from a
vocabulary of 200,000, distributed by Zipf's law, with capitals, punctuation and numbers, and 3 of
100 labels.
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
from pathlib import Path

import numpy as np

WORDS = 100


def _spell(rank: int, syllables: list[str]) -> str:
    """Spell a word: rarer words are longer, and the mean of a text is five letters."""
    spelled = syllables[rank % 65]
    while rank := rank // 65:
        spelled += syllables[rank % 65]
    return spelled + "n" * (len(spelled) > 2) + "st" * (len(spelled) > 4)


def write_documents(file: Path, n_documents: int) -> None:
    random = np.random.default_rng(0)
    syllables = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
    words = [_spell(rank, syllables) for rank in range(200_000)]
    words[:10] = ["the", "of", "and", "to", "in", "a", "is", "that", "for", "it"]
    words = [word.capitalize() if i % 17 == 16 else word for i, word in enumerate(words)]
    ranks = np.arange(1, len(words) + 1)
    cumulative = np.cumsum(1 / ranks)
    cumulative /= cumulative[-1]
    with file.open("w", encoding="utf-8") as stream:
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
                stream.write(json.dumps({"text": " ".join(text), "labels": names}) + "\n")


def prepare(file: Path, out: Path) -> dict[str, float]:
    from setrnn.config import TextSettings
    from setrnn.data.cache import Source, open_prepared

    start = time.perf_counter()
    prepared = open_prepared(Source(str(file)), TextSettings(), out)
    seconds = time.perf_counter() - start
    n_documents = prepared.description["n_documents"]["train"]
    return {
        "documents": n_documents,
        "seconds": round(seconds, 1),
        "documents_per_second": round(n_documents / seconds),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "cores": os.cpu_count() or 0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.file:  # the measured process, which has not written the documents
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(prepare(arguments.file, Path(folder))))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "documents.jsonl"
        write_documents(file, arguments.documents)
        subprocess.run([sys.executable, __file__, "--file", file], check=True)


if __name__ == "__main__":
    main()
