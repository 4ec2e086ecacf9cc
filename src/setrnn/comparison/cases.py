"""Explained test documents: the material of a report's case studies."""

from __future__ import annotations

from typing import Any

import numpy as np

from setrnn.comparison.records import LabelSets
from setrnn.data.batches import even_rows
from setrnn.data.prepared import Prepared, PreparedSplit
from setrnn.tagging.explain.explain import explain_tokens
from setrnn.tagging.tagger import Tagger

N_SHARED, N_OWN = 16, 4  # explained documents: the same for all systems, and of one system
LABELS_OF_SHARED = range(2, 6)  # so that a table or a picture of them fits a page
MOST_LABELS_OF_OWN = 8
WORDS = range(8, 201)
N_WORDS, N_SEQUENCES = 6, 12  # kept per step of the attention, and per document


def explain_documents(
    tagger: Tagger, prepared: Prepared, by_set: LabelSets, by_sequence: LabelSets
) -> list[dict[str, Any]]:
    """Explain test documents: the shared ones, and some where set and sequence differ."""
    test = prepared.split("test")
    own = choose_differing_documents(test, by_set, by_sequence)
    chosen = sorted({*choose_shared_documents(test, len(prepared.labels)), *own})
    return [_explain_document(tagger, prepared, test, document) for document in chosen]


def choose_shared_documents(test: PreparedSplit, n_labels: int) -> list[int]:
    """Choose documents for all systems: evenly spread, and chosen by the data alone."""
    is_known = np.array([bool((row < n_labels).all()) for row in test.labels])
    is_fit = (
        is_known
        & np.isin(test.labels.lengths, list(LABELS_OF_SHARED))
        & np.isin(test.tokens.lengths, list(WORDS))
    )
    fit = np.flatnonzero(is_fit)
    if not len(fit):
        return []
    return [int(row) for row in fit[even_rows(len(fit), N_SHARED)]]


def choose_differing_documents(
    test: PreparedSplit, by_set: LabelSets, by_sequence: LabelSets
) -> list[int]:
    """Choose documents whose most probable set is not that of the best sequence."""
    truth = [set(row.tolist()) for row in test.labels]
    found = [
        document
        for document, (one, other) in enumerate(zip(by_set, by_sequence, strict=True))
        if set(one) != set(other)
        and 1 < len(one) <= MOST_LABELS_OF_OWN
        and len(test.tokens[document]) in WORDS
    ]
    # Correct sets first, then large sets, whose many orders explain the difference.
    found.sort(key=lambda row: (set(by_set[row]) != truth[row], -len(by_set[row]), row))
    return found[:N_OWN]


def _explain_document(
    tagger: Tagger, prepared: Prepared, test: PreparedSplit, document: int
) -> dict[str, Any]:
    """Return the parts of an explanation that a report shows, as plain values."""
    tokens = test.tokens.rows(document, document + 1)
    explanation = explain_tokens(tagger, tokens, N_SEQUENCES)
    names = [*prepared.labels.names, *prepared.unseen_labels]
    return {
        "document": document,
        "id": test.ids(document, document + 1)[0],
        "truth": [names[label] for label in test.labels[document]],
        "words": list(explanation.read),
        "differs": explanation.sequences[0].set_name != explanation.predicted.name,
        "sequences": [
            {
                "labels": list(each.labels),
                "probability": _shorten(each.probability),
                "set": each.set_name,
            }
            for each in explanation.sequences
        ],
        "sets": [
            {
                "name": each.name,
                "labels": list(each.labels),
                "probability": _shorten(each.probability),
                "is_exact": each.is_exact,
            }
            for each in explanation.sets
        ],
        "steps": [
            {
                "label": step.label,
                "probability": _shorten(step.probability),
                "attended": [
                    (word.text, _shorten(word.weight))
                    for word in explanation.attended(step, N_WORDS)
                ],
            }
            for step in explanation.steps
        ],
    }


def _shorten(value: float) -> float:
    """Keep four digits."""
    return float(f"{value:.4g}")
