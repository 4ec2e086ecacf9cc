"""Which orders of its labels a system prefers: the paper's entropy, and the best order."""

# n documents, K orders, S labels of the largest set

from __future__ import annotations

from math import factorial

import numpy as np
import numpy.typing as npt

from setrnn.data.ragged import Ragged
from setrnn.systems.recurrent import RecurrentSystem

N_ORDERS = 24  # all of a set of four labels; of larger ones, the best so many


def order_entropies(system: RecurrentSystem, tokens: Ragged, sets: Ragged) -> list[float | None]:
    """Return the entropy over the orders of a set for each document; None below two labels."""
    _, log_probs = system.orders(tokens, sets.padded(min_width=1), N_ORDERS)
    return normalised_entropies(log_probs, sets.lengths)


def normalised_entropies(
    log_probs: npt.NDArray[np.float64], sizes: npt.NDArray[np.int64]
) -> list[float | None]:
    """Return the entropy of log p of orders (n, K), divided by the log of their number.

    0: all on one order; 1: all orders are as likely. None for sets (n,) below two labels.
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
    """Return the best order of a set for each document."""
    orders, _ = system.orders(tokens, sets.padded(min_width=1), system.config.search.beam_width)
    return [row[row >= 0].tolist() for row in orders[:, 0]]
