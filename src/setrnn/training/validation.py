"""Measure a system on the valid part, to choose the best epoch or settings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setrnn.data.batches import take_rows
from setrnn.data.prepared import Prepared
from setrnn.metrics import MEASURES, evaluate_sets, indicator_matrix
from setrnn.systems.limits import no_limits
from setrnn.systems.neural import MAX_DOCUMENTS
from setrnn.systems.predicting import BatchSearch
from setrnn.systems.rules import count_candidates, find_rule
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
    by, limits = find_rule(rule), no_limits(len(prepared.labels))
    predicted, log_probs = [], []
    for start in range(0, len(rows), MAX_DOCUMENTS):
        tokens = take_rows(valid.tokens, rows[start : start + MAX_DOCUMENTS])
        search = BatchSearch(system, tokens, {by.source: count_candidates(by)})
        chosen = search.choose(rule, limits)
        predicted += [row[row >= 0] for row in chosen.labels]
        log_probs.append(chosen.log_probs)
        between_batches()
    n_labels = len(prepared.labels) + len(prepared.unseen_labels)
    truth = list(take_rows(valid.labels, rows))
    measured = evaluate_sets(
        indicator_matrix(truth, n_labels), indicator_matrix(predicted, n_labels)
    ).as_dict()
    return {name: float(measured[name]) for name in MEASURES} | {
        "mean_probability": float(np.exp(np.concatenate(log_probs)).mean())
    }
