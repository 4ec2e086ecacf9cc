"""Documents explained, for the paper's Table 4 and Figure 3: a few all systems share, a few own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setrnn.comparison.records import LabelSets
from setrnn.data.prepared import Prepared, PreparedSplit
from setrnn.tagging.explanation import Explanation, explain_tokens
from setrnn.tagging.tagger import Tagger

N_SHARED, N_OWN = 16, 4
LABELS_OF_SHARED = range(2, 6)  # so that a table or a picture of them fits a page
MOST_LABELS_OF_OWN = 8
WORDS = range(8, 201)
N_WORDS, N_SEQUENCES = 6, 12  # that are kept of a step's attention, and of a document


def explained_cases(
    tagger: Tagger, prepared: Prepared, by_set: LabelSets, by_sequence: LabelSets
) -> list[dict[str, Any]]:
    """Explain documents of test: the shared ones, and some where set and sequence differ."""
    test = prepared.split("test")
    own = differing_documents(test, by_set, by_sequence)
    chosen = sorted({*shared_documents(test, len(prepared.labels)), *own})
    return [_case(tagger, prepared, test, document) for document in chosen]


def shared_documents(test: PreparedSplit, n_labels: int) -> list[int]:
    """Choose documents that all systems explain: evenly spread, by the data alone."""
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


def differing_documents(
    test: PreparedSplit, by_set: LabelSets, by_sequence: LabelSets
) -> list[int]:
    """Choose documents whose most probable set is not that of the best sequence: right ones."""
    truth = [set(row.tolist()) for row in test.labels]
    found = [
        document
        for document, (one, other) in enumerate(zip(by_set, by_sequence, strict=True))
        if set(one) != set(other)
        and 1 < len(one) <= MOST_LABELS_OF_OWN
        and len(test.tokens[document]) in WORDS
    ]
    # Right ones first; of those, large sets, whose many orders make the case.
    found.sort(key=lambda row: (set(by_set[row]) != truth[row], -len(by_set[row]), row))
    return found[:N_OWN]


def _case(tagger: Tagger, prepared: Prepared, test: PreparedSplit, document: int) -> dict[str, Any]:
    tokens = test.tokens.rows(document, document + 1)
    explanation = explain_tokens(tagger, tokens, N_SEQUENCES)
    names = [*prepared.labels.names, *prepared.unseen_labels]
    return {
        "document": document,
        "id": test.ids(document, document + 1)[0],
        "truth": [names[label] for label in test.labels[document]],
        **explanation_values(explanation),
    }


def explanation_values(explanation: Explanation) -> dict[str, Any]:
    """Return what a report shows of an explanation, as plain values."""
    return {
        "words": list(explanation.read),
        "differs": explanation.sequences[0].set_name != explanation.predicted.name,
        "sequences": [
            {
                "labels": list(each.labels),
                "probability": _rounded(each.probability),
                "set": each.set_name,
            }
            for each in explanation.sequences
        ],
        "sets": [
            {
                "name": each.name,
                "labels": list(each.labels),
                "probability": _rounded(each.probability),
                "is_exact": each.is_exact,
            }
            for each in explanation.sets
        ],
        "steps": [
            {
                "label": step.label,
                "probability": _rounded(step.probability),
                "attended": _attended(explanation, step_number),
            }
            for step_number, step in enumerate(explanation.steps)
        ],
    }


def _attended(explanation: Explanation, step_number: int) -> Sequence[tuple[str, float]]:
    words = explanation.attended(explanation.steps[step_number], N_WORDS)
    return [(word.text, _rounded(word.weight)) for word in words]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
