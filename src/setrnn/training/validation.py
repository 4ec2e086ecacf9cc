"""Measure a system on the valid part, to choose the best epoch or settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from setrnn.config import TRAINING_METRICS
from setrnn.data.batches import take_rows
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.metrics import evaluate_sets
from setrnn.systems.neural import MAX_DOCUMENTS
from setrnn.systems.rules import Choice, choose_sets, find_rule, no_limits
from setrnn.systems.rules.choice import SetLogProbs
from setrnn.systems.system import System


def has_valid(prepared: Prepared) -> bool:
    """Return whether there are documents to measure on."""
    return bool(prepared.description["n_documents"].get("valid"))


def validate(
    system: System,
    prepared: Prepared,
    rule: str,
    max_documents: int,
    between_batches: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Measure on the valid part; on `max_documents` evenly spaced ones if there are more."""
    valid = prepared.split("valid")
    rows = np.linspace(0, len(valid) - 1, min(max_documents, len(valid))).round().astype(np.int64)
    rows = rows[np.argsort(-valid.tokens.lengths[rows], kind="stable")]
    chosen, limits = find_rule(rule), no_limits(len(prepared.labels))
    predicted, log_probs = [], []
    for start in range(0, len(rows), MAX_DOCUMENTS):
        tokens = take_rows(valid.tokens, rows[start : start + MAX_DOCUMENTS])
        candidates = system.candidates(tokens, chosen.n_sets(1, limits), chosen.source)
        score = _score_sets_with(system, tokens)
        labels, scores = choose_sets(chosen, Choice(candidates, limits, score))
        predicted += [row[row >= 0] for row in labels]
        log_probs.append(scores)
        between_batches()
    n_labels = len(prepared.labels) + len(prepared.unseen_labels)
    measured = evaluate_sets(
        _indicate(take_rows(valid.labels, rows), n_labels),
        _indicate(_join_rows(predicted), n_labels),
    ).as_dict()
    return {name: float(measured[name]) for name in TRAINING_METRICS} | {
        "mean_probability": float(np.exp(np.concatenate(log_probs)).mean())
    }


def _score_sets_with(system: System, tokens: Ragged) -> SetLogProbs:
    return lambda rows, sets: system.set_log_probs(take_rows(tokens, rows), sets)


def _join_rows(rows: list[npt.NDArray[np.int32]]) -> Ragged:
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    return Ragged.from_lengths(np.concatenate(rows), lengths)


def _indicate(sets: Ragged, n_labels: int) -> csr_array[Any, tuple[int, int]]:
    ones = np.ones(len(sets.values), dtype=np.int8)
    return csr_array((ones, sets.values, sets.offsets), shape=(len(sets), n_labels))
