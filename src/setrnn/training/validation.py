"""How good a network is on the valid part, for the choice of the best epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from setrnn.config import TRAINING_METRICS
from setrnn.data.batches import take_rows
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.decoding import find_rule
from setrnn.metrics import evaluate_sets
from setrnn.recurrent import RecurrentSystem
from setrnn.training.checkpoints import Position


def validate(
    system: RecurrentSystem, prepared: Prepared, rule: str, max_documents: int
) -> dict[str, float]:
    """Measure on the valid part, or on documents evenly drawn from a larger one."""
    valid = prepared.split("valid")
    rows = np.linspace(0, len(valid) - 1, min(max_documents, len(valid))).round().astype(np.int64)
    chosen = find_rule(rule)
    candidates = system.candidates(take_rows(valid.tokens, rows), 1, chosen.source)
    predicted, log_probs = chosen.choose(candidates)
    n_labels = len(prepared.labels) + len(prepared.unseen_labels)
    scores = evaluate_sets(
        _indicator(take_rows(valid.labels, rows), n_labels),
        _indicator(_ragged(predicted), n_labels),
    ).as_dict()
    return {name: float(scores[name]) for name in TRAINING_METRICS} | {
        "mean_probability": float(np.exp(log_probs).mean())
    }


def is_better(metric: str, value: float, position: Position) -> bool:
    """Tell whether a value beats the best so far."""
    if position.best_epoch == 0:
        return True
    if metric == "hamming_loss":
        return value < position.best_value
    return value > position.best_value


def _ragged(labels: npt.NDArray[np.int32]) -> Ragged:
    is_label = labels >= 0
    return Ragged.from_lengths(labels[is_label], is_label.sum(axis=1))


def _indicator(sets: Ragged, n_labels: int) -> csr_array[Any, tuple[int, int]]:
    ones = np.ones(len(sets.values), dtype=np.int8)
    return csr_array((ones, sets.values, sets.offsets), shape=(len(sets), n_labels))
