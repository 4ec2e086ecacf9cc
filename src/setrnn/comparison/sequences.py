"""What a record has of systems that emit sequences: orders, their sums, and some documents."""

# n documents, K orders, S labels of the largest set

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import entr, softmax

from setrnn.comparison.records import LabelSets, SetSums
from setrnn.data.prepared import Prepared, PreparedSplit
from setrnn.data.ragged import Ragged, even_rows
from setrnn.model.interfaces import Encoding
from setrnn.search.set_search import ScoredSets, best_sequences
from setrnn.systems.candidates import Floats, Ids, to_probability
from setrnn.systems.neural import Rows
from setrnn.systems.recurrent import OrderFreeSystem, RecurrentSystem
from setrnn.tagging.explain import sums_all_orders

N_ORDERS = 24  # all orders of four labels; of larger sets, the best 24
WIDTHS = (1, 4, 12, 48)  # of the searches whose sums are compared with the sum over all orders
SUMMED_SIZES = range(2, 8)  # a set of eight labels has 40,320 orders
N_SUMMED = 32  # documents per size, as far as they have at most MOST_ORDERS orders together
MOST_ORDERS, ORDERS_AT_ONCE = 100_000, 20_000
DIGITS = 4  # of log-probabilities in a record
N_CASES, MOST_LABELS, N_SEQUENCES = 4, 8, 12  # documents, labels of each, sequences of each


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


def describe_differing(
    system: RecurrentSystem, prepared: Prepared, by_set: LabelSets, by_sequence: LabelSets
) -> list[dict[str, Any]]:
    """Describe test documents whose most probable set is not that of the best sequence.

    Each has its most probable sequences, with the probability of the set of each.
    """
    test, names = prepared.split("test"), [*prepared.labels.names, *prepared.unseen_labels]
    cases = []
    for row in choose_differing_documents(test, by_set, by_sequence):
        tokens = test.tokens.rows(row, row + 1)
        orders, log_probs = find_sequences(system, tokens)
        cases.append(
            {
                "id": test.ids(row, row + 1)[0],
                "truth": [names[label] for label in test.labels[row]],
                "sequences": [
                    {
                        "labels": [names[label] for label in order if label >= 0],
                        "probability": to_probability(log_prob),
                        "set_probability": to_probability(of_set),
                        "is_exact": sums_all_orders(system, int((order >= 0).sum())),
                    }
                    for order, log_prob, of_set in zip(
                        orders,
                        log_probs,
                        system.set_log_probs(tokens, orders[None])[0],
                        strict=True,
                    )
                ],
            }
        )
    return cases


@torch.inference_mode()
def find_sequences(system: RecurrentSystem, tokens: Ragged) -> tuple[Ids, Floats]:
    """Return the most probable sequences of one document, (K, S), and log p of each, (K,)."""
    width, max_labels = system.config.search.beam_width, system.config.model.max_labels

    def search(rows: Rows, encoding: Encoding) -> ScoredSets:
        found = best_sequences(system.network.decoder, encoding, width, max_labels)
        return ScoredSets(found.labels[:, 0], found.log_probs[:, 0])

    found = system.gather_sets(tokens, width, search)
    is_there = found.log_probs[0, :N_SEQUENCES] > -np.inf
    return found.labels[0, :N_SEQUENCES][is_there], found.log_probs[0, :N_SEQUENCES][is_there]


def choose_differing_documents(
    test: PreparedSplit, by_set: LabelSets, by_sequence: LabelSets
) -> list[int]:
    """Choose documents whose most probable set is not that of the best sequence."""
    truth = [set(row.tolist()) for row in test.labels]
    found = [
        document
        for document, (one, other) in enumerate(zip(by_set, by_sequence, strict=True))
        if set(one) != set(other) and 1 < len(one) <= MOST_LABELS
    ]
    # Correct sets first, then large sets, whose many orders explain the difference.
    found.sort(key=lambda row: (set(by_set[row]) != truth[row], -len(by_set[row]), row))
    return found[:N_CASES]
