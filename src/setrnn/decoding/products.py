"""The sets of independent labels: their probability is the product over all labels."""

# n documents, L labels, K candidates, G sets, S labels of the largest set

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from setrnn.decoding.candidates import SetCandidates, log_sigmoid, pack_labels


def most_probable_products(logits: npt.NDArray[np.float32], n_sets: int) -> SetCandidates:
    """Return the K best sets when labels are independent.

    The best set takes each label of positive log-odds; turning label l costs |log-odds|.
    The K best combinations of turned labels use only the K - 1 cheapest ones: exact.
    """
    n, n_labels = logits.shape
    n_sets = min(n_sets, 2 ** min(n_labels, 30))
    cost = np.abs(logits.astype(np.float64))
    n_turned = min(n_labels, n_sets - 1)
    cheapest = np.argpartition(cost, max(n_turned - 1, 0), axis=1)[:, :n_turned]
    total = np.zeros((n, 1))  # cost of each combination kept, (n, K)
    turned = np.zeros((n, 1, n_turned), dtype=bool)
    for step in range(n_turned):
        with_it = turned.copy()
        with_it[:, :, step] = True
        price = np.take_along_axis(cost, cheapest[:, step : step + 1], axis=1)
        total = np.concatenate([total, total + price], axis=1)
        turned = np.concatenate([turned, with_it], axis=1)
        order = np.argsort(total, axis=1, kind="stable")[:, :n_sets]
        total = np.take_along_axis(total, order, axis=1)
        turned = np.take_along_axis(turned, order[:, :, None], axis=1)

    best = log_sigmoid(cost).sum(1)
    # The labels that can be in a candidate: those of positive log-odds, and the turned ones.
    is_positive = logits > 0
    is_fixed = is_positive.copy()
    np.put_along_axis(is_fixed, cheapest, False, axis=1)
    fixed = _listed(is_fixed)[:, None].repeat(total.shape[1], axis=1)  # (n, K, F)
    is_in = np.take_along_axis(is_positive, cheapest, axis=1)[:, None] ^ turned
    flexible = np.where(is_in, cheapest[:, None], -1)  # (n, K, K - 1)
    labels = np.concatenate([fixed, flexible.astype(np.int32)], axis=2)
    return SetCandidates(pack_labels(labels), best[:, None] - total)


def product_log_probs(
    logits: npt.NDArray[np.float32], label_sets: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G)."""
    log_odds = logits.astype(np.float64)
    of_none = log_sigmoid(-log_odds).sum(1, keepdims=True)
    return np.asarray(of_none + sum_over_sets(log_odds, label_sets))


def sum_over_sets(
    values: npt.NDArray[np.float64], label_sets: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """Sum the values (n, L) of each set's labels, (n, G, S) that -1 fills up: (n, G)."""
    document = np.arange(len(values))[:, None, None]
    chosen = values[document, np.maximum(label_sets, 0)]
    return np.asarray(np.where(label_sets >= 0, chosen, 0.0).sum(2))


def _listed(is_chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """List the chosen columns of each row; -1 fills up."""
    rows, columns = np.nonzero(is_chosen)
    position = np.cumsum(is_chosen, axis=1)[rows, columns] - 1
    listed = np.full((len(is_chosen), int(position.max(initial=0)) + 1), -1, dtype=np.int32)
    listed[rows, position] = columns
    return listed
