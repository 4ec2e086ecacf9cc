"""The probability of the set, the sum over its orders: set-RNN (Eq. 5, Algorithm 2)."""

from __future__ import annotations

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.few_orders import all_orders, count_orders, few, search_large_sets
from setrnn.objectives.objective import LabelSets, Objective, Orders, log_sum_exp


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
) -> Orders:
    """Take the top of a search; of sets with few orders all count, and none is searched for."""
    orders = search_large_sets(decoder, encoding, label_sets, n_orders, few(n_orders))
    orders = all_orders(label_sets, orders)
    return Orders(orders, count_orders(label_sets.sizes, n_orders))


OBJECTIVE = Objective(choose_orders, log_sum_exp)
