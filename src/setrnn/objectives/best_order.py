"""The model's own best order: Vinyals-RNN-max (Eq. 2)."""

from __future__ import annotations

import torch

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.few_orders import search_large_sets
from setrnn.objectives.objective import LabelSets, OrderObjective, Orders, the_one


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
) -> Orders:
    """Take the best of a search with beam `n_orders`; a set of one label has only one order."""
    orders = search_large_sets(decoder, encoding, label_sets, n_orders, largest_known=1)
    return Orders(orders[:, :1], torch.ones_like(label_sets.sizes))


OBJECTIVE = OrderObjective(choose_orders, the_one)
