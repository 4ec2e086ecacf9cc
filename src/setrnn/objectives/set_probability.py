"""The probability of the set, the sum over its orders: set-RNN (Eq. 5, Algorithm 2)."""

from __future__ import annotations

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.few_orders import (
    count_orders,
    fill_in_all_orders,
    largest_listed_size,
    search_large_sets,
)
from setrnn.objectives.objective import LabelSets, OrderObjective, Orders, log_sum_exp


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
) -> Orders:
    """Take the best orders of a search; a set with few orders has them all, without a search."""
    orders = search_large_sets(
        decoder, encoding, label_sets, n_orders, largest_listed_size(n_orders)
    )
    orders = fill_in_all_orders(label_sets, orders)
    return Orders(orders, count_orders(label_sets.sizes, n_orders))


OBJECTIVE = OrderObjective(choose_orders, log_sum_exp)
