"""Measure the value of a known label: predict the other labels with it and without it.

    python benchmarks/completion.py DATA MODEL... [--given 1] [--seed 0] [--json FILE]

For each test document with more than `--given` labels, that many of its true labels are drawn and
given. The other true labels are compared with the other predicted labels: of the most probable set
that contains the given labels, and of the most probable set of all, as if nothing were known. DATA
must be what the models were trained on, or a folder prepared from it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from setrnn.data.cache import Source, open_prepared
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError
from setrnn.metrics import document_f1
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.known import Known
from setrnn.systems.rules import count_completions
from setrnn.tagging.loading import load
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trained_model import BATCH

Marks = npt.NDArray[np.bool_]  # documents x labels
COLUMNS = ("instance_f1", "exact", "suggestion_right", "documents_per_second")


def draw_given(labels: Ragged, n_labels: int, n_given: int, seed: int) -> tuple[list[int], Known]:
    """Draw the labels that are given: the documents' rows, and what is known of each."""
    random = np.random.default_rng(seed)
    rows, given = [], []
    for row, true in enumerate(labels):
        of_model = true[true < n_labels]
        if len(true) > n_given and len(of_model) >= n_given:
            rows.append(row)
            given.append(random.choice(of_model, n_given, replace=False).tolist())
    return rows, Known.of(given, [()] * len(given))


def marks_of(sets: Ragged, n_columns: int) -> Marks:
    """Mark the labels of each set."""
    marks = np.zeros((len(sets), n_columns), dtype=bool)
    marks[sets.row_numbers, sets.values] = True
    return marks


def predict(tagger: Tagger, tokens: Ragged, known: Known | None, n_columns: int) -> dict[str, Any]:
    """Return the most probable set and the marginals of each document, and the time it took."""
    sets: list[npt.NDArray[np.int32]] = []
    marginals: list[npt.NDArray[np.float32]] = []
    start = time.perf_counter()
    for first in range(0, len(tokens), BATCH):
        part = tokens.rows(first, min(first + BATCH, len(tokens)))
        of_part = None if known is None else known.rows(slice(first, first + BATCH))
        found: SetCandidates = tagger.system.candidates(part, count_completions(), known=of_part)
        sets.extend(row[row >= 0] for row in found.labels[:, 0])
        marginals.append(found.marginals(n_columns))
    seconds = time.perf_counter() - start
    lengths = np.array([len(row) for row in sets])
    return {
        "sets": marks_of(Ragged.from_lengths(np.concatenate(sets), lengths), n_columns),
        "marginals": np.concatenate(marginals),
        "documents_per_second": len(tokens) / seconds,
    }


def score(found: dict[str, Any], rest: Marks, is_given: Marks) -> dict[str, Any]:
    """Compare the other predicted labels with the other true labels."""
    predicted = found["sets"] & ~is_given
    suggested = np.where(is_given, -1.0, found["marginals"]).argmax(1)
    return {
        "f1": document_f1(csr_array(rest), csr_array(predicted)),
        "exact": float((predicted == rest).all(1).mean()),
        "suggestion_right": float(rest[np.arange(len(rest)), suggested].mean()),
        "documents_per_second": found["documents_per_second"],
    }


def measure(tagger: Tagger, prepared: Prepared, n_given: int, seed: int) -> dict[str, Any]:
    """Measure one model with the labels that are given, and without them."""
    if prepared.encoder.tokenizer.to_str() != tagger.encoder.tokenizer.to_str():
        raise DataError(f"{prepared.folder} was prepared with another vocabulary than the model's.")
    test, n_labels = prepared.split("test"), len(prepared.labels)
    rows, known = draw_given(test.labels, n_labels, n_given, seed)
    n_columns = n_labels + len(prepared.unseen_labels)
    is_given = known.is_present(n_columns)
    rest = marks_of(test.labels.take(np.array(rows)), n_columns) & ~is_given
    tokens = test.tokens.take(np.array(rows))
    with_it, without = (
        score(predict(tagger, tokens, each, n_columns), rest, is_given) for each in (known, None)
    )
    gain = with_it.pop("f1"), without.pop("f1")
    with_it["instance_f1"], without["instance_f1"] = (float(each.mean()) for each in gain)
    difference = gain[0] - gain[1]
    return {
        "method": tagger.method,
        "n_documents": len(rows),
        "ignoring": without,
        "given": with_it,
        "gain": float(difference.mean()),
        "gain_standard_error": float(difference.std(ddof=1) / np.sqrt(len(rows))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--given", type=int, default=1, help="how many true labels are given")
    parser.add_argument("--seed", type=int, default=0, help="draws them")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = {}
    print(f"{'':24} {'F1 of the rest':>16} {'exactly right':>14} {'suggestion':>11} {'docs/s':>8}")
    for model in arguments.models:
        tagger = load(model, arguments.device)
        prepared = open_prepared(Source(arguments.data), tagger.config.text)
        found = measure(tagger, prepared, arguments.given, arguments.seed)
        results[model.name] = found
        for name in ("ignoring", "given"):
            shown = [found[name][column] for column in COLUMNS]
            print(
                f"{model.name + ', ' + name:24} {shown[0]:16.4f} {shown[1]:14.4f}"
                f" {shown[2]:11.4f} {shown[3]:8,.0f}"
            )
        print(
            f"  gain {found['gain']:+.4f} of F1 (standard error "
            f"{found['gain_standard_error']:.4f}), {found['n_documents']:,} documents",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
