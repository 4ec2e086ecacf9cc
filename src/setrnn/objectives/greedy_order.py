"""The order of the model's own predictions: the Order-Free RNN (Chen et al. 2018).

The target of each step is the most probable of the true labels that are left, and the sequence
continues with it. This is the best order (Eq. 2) by a search with a beam of one.
"""

from __future__ import annotations

import torch

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.few_orders import search_large_sets
from setrnn.objectives.objective import LabelSets, OrderObjective, Orders, the_one


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
) -> Orders:
    """Take the most probable label that is left, step by step."""
    orders = search_large_sets(decoder, encoding, label_sets, n_orders=1, largest_known=1)
    return Orders(orders, torch.ones_like(label_sets.sizes))


OBJECTIVE = OrderObjective(choose_orders, the_one)
