"""What a record has of systems that emit sequences: orders, their sums, and explained documents."""

# n documents, K orders, S labels of the largest set

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import entr, softmax

from setrnn.comparison.records import LabelSets, SetSums
from setrnn.data.prepared import Prepared, PreparedSplit
from setrnn.data.ragged import Ragged, even_rows
from setrnn.systems.candidates import Ids, ScoredSet
from setrnn.systems.recurrent import OrderFreeSystem, RecurrentSystem
from setrnn.tagging.explain import explain_tokens
from setrnn.tagging.tagger import Tagger

Rows = npt.NDArray[np.int64]

N_ORDERS = 24  # all orders of four labels; of larger sets, the best 24
WIDTHS = (1, 4, 12, 48)  # of the searches whose sums are compared with the sum over all orders
SUMMED_SIZES = range(2, 8)  # a set of eight labels has 40,320 orders
N_SUMMED = 32  # documents per size, as far as they have at most MOST_ORDERS orders together
MOST_ORDERS, ORDERS_AT_ONCE = 100_000, 20_000
DIGITS = 4  # of log-probabilities in a record
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
    entropies = entr(softmax(log_probs, axis=1)).sum(1)
    n_orders = [min(factorial(min(int(size), K)), K) for size in sizes]
    return [
        round(min(max(float(entropy) / np.log(n), 0.0), 1.0), 5) if n > 1 else None
        for entropy, n in zip(entropies, n_orders, strict=True)
    ]


def measure_set_sums(system: RecurrentSystem, tokens: Ragged, true_sets: Ragged) -> SetSums | None:
    """Compare what searches find of p(true set) with the sum over all orders of the set.

    The documents are spread evenly over each set size; they do not depend on the system. The sets
    of `set-rnn-exact` are summed exactly, so that it has nothing to compare.
    """
    chosen = choose_summed_documents(true_sets)
    if isinstance(system, OrderFreeSystem) or not len(chosen):
        return None
    exact: list[float] = []
    found: dict[int, list[float]] = {width: [] for width in WIDTHS}
    for size in SUMMED_SIZES:
        of_size = chosen[true_sets.lengths[chosen] == size]
        n_at_once = max(1, ORDERS_AT_ONCE // factorial(size))
        for start in range(0, len(of_size), n_at_once):
            rows = of_size[start : start + n_at_once]
            sets, some = true_sets.padded(rows=rows), tokens.take(rows)
            for width, sums in found.items():
                sums += sum_orders(system, some, sets, width)
            exact += sum_orders(system, some, sets, factorial(size))
    return SetSums([int(row) for row in chosen], list(WIDTHS), list(found.values()), exact)


def choose_summed_documents(true_sets: Ragged) -> Rows:
    """Choose documents of each size, evenly spread, as many as can be summed over all orders."""
    chosen = [np.zeros(0, dtype=np.int64)]
    for size in SUMMED_SIZES:
        rows = np.flatnonzero(true_sets.lengths == size)
        n = min(len(rows), N_SUMMED, MOST_ORDERS // factorial(size))
        if n:
            chosen.append(rows[even_rows(len(rows), n)])
    return np.concatenate(chosen)


def sum_orders(system: RecurrentSystem, tokens: Ragged, sets: Ids, width: int) -> list[float]:
    """Return log of the summed probabilities of the orders that a search of a width finds."""
    _, log_probs = system.orders(tokens, sets, width)
    sums = np.logaddexp.reduce(log_probs.astype(np.float64), axis=1)
    return [round(float(each), DIGITS) for each in sums]


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
    rows: list[int] = fit[even_rows(len(fit), N_SHARED)].tolist()
    return rows


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
    found = explain_tokens(tagger, test.tokens.rows(document, document + 1), N_SEQUENCES)
    names = [*prepared.labels.names, *prepared.unseen_labels]

    def show(each: ScoredSet, **more: Any) -> dict[str, Any]:  # noqa: ANN401 (JSON values)
        prob = _shorten(each.probability)
        return {"labels": list(each.labels), "probability": prob, **more}

    return {
        "document": document,
        "id": test.ids(document, document + 1)[0],
        "truth": [names[label] for label in test.labels[document]],
        "words": list(found.read),
        "differs": found.sequences[0].set != found.predicted.name,
        "sequences": [show(each, set=each.set) for each in found.sequences],
        "sets": [show(each, name=each.name, is_exact=each.is_exact) for each in found.sets],
        "steps": [
            {
                "label": step.label,
                "probability": _shorten(step.probability),
                "attended": [
                    (word.text, _shorten(word.weight)) for word in found.words_for(step, N_WORDS)
                ],
            }
            for step in found.steps
        ],
    }


def _shorten(value: float) -> float:
    """Keep four digits."""
    return float(f"{value:.4g}")
