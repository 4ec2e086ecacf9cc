"""What a record says of sequences: the orders a system prefers, and explained test documents.

The entropy over orders is a figure of the paper; the documents are for its Table 4 and Figure 3.
"""

# n documents, K orders, S labels of the largest set

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import LabelSets
from setrnn.data.prepared import Prepared, PreparedSplit
from setrnn.data.ragged import Ragged
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.tagging.explanation import Explanation, explain_tokens
from setrnn.tagging.tagger import Tagger

N_ORDERS = 24  # all orders of four labels; of larger sets, the best 24
N_SHARED, N_OWN = 16, 4  # explained documents: the same for all systems, and of one system
LABELS_OF_SHARED = range(2, 6)  # so that a table or a picture of them fits a page
MOST_LABELS_OF_OWN = 8
WORDS = range(8, 201)
N_WORDS, N_SEQUENCES = 6, 12  # kept per step of the attention, and per document


def order_entropies(system: RecurrentSystem, tokens: Ragged, sets: Ragged) -> list[float | None]:
    """Return the entropy over the orders of one set per document; None below two labels."""
    _, log_probs = system.orders(tokens, sets.padded(min_width=1), N_ORDERS)
    return normalised_entropies(log_probs, sets.lengths)


def normalised_entropies(
    log_probs: npt.NDArray[np.float64], sizes: npt.NDArray[np.int64]
) -> list[float | None]:
    """Return the entropy of log p of orders (n, K), divided by the log of their number.

    0 means that one order has all the probability, 1 that all orders are equally likely. Sets
    (n,) of fewer than two labels have None.
    """
    K = log_probs.shape[1]
    with np.errstate(invalid="ignore"):
        probs = np.exp(log_probs - log_probs.max(1, keepdims=True))
    probs /= probs.sum(1, keepdims=True)
    entropies = -(probs * np.log(np.where(probs > 0, probs, 1.0))).sum(1)
    n_orders = [min(factorial(min(int(size), K)), K) for size in sizes]
    return [
        round(min(max(float(entropy) / np.log(n), 0.0), 1.0), 5) if n > 1 else None
        for entropy, n in zip(entropies, n_orders, strict=True)
    ]


def best_orders(system: RecurrentSystem, tokens: Ragged, sets: Ragged) -> list[list[int]]:
    """Return the most probable order of one set per document."""
    orders, _ = system.orders(tokens, sets.padded(min_width=1), system.config.search.beam_width)
    return [row[row >= 0].tolist() for row in orders[:, 0]]


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
    return sorted(set(fit[np.linspace(0, len(fit) - 1, N_SHARED).round().astype(int)].tolist()))


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
    tokens = test.tokens.rows(document, document + 1)
    explanation = explain_tokens(tagger, tokens, N_SEQUENCES)
    names = [*prepared.labels.names, *prepared.unseen_labels]
    return {
        "document": document,
        "id": test.ids(document, document + 1)[0],
        "truth": [names[label] for label in test.labels[document]],
        **_explanation_values(explanation),
    }


def _explanation_values(explanation: Explanation) -> dict[str, Any]:
    """Return the parts of an explanation that a report shows, as plain values."""
    return {
        "words": list(explanation.read),
        "differs": explanation.sequences[0].set_name != explanation.predicted.name,
        "sequences": [
            {
                "labels": list(each.labels),
                "probability": _round(each.probability),
                "set": each.set_name,
            }
            for each in explanation.sequences
        ],
        "sets": [
            {
                "name": each.name,
                "labels": list(each.labels),
                "probability": _round(each.probability),
                "is_exact": each.is_exact,
            }
            for each in explanation.sets
        ],
        "steps": [
            {
                "label": step.label,
                "probability": _round(step.probability),
                "attended": [
                    (word.text, _round(word.weight)) for word in explanation.attended(step, N_WORDS)
                ],
            }
            for step in explanation.steps
        ],
    }


def _round(value: float) -> float:
    return float(f"{value:.4g}")
