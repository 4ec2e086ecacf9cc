"""The probability of the set, the sum over its orders: set-RNN (Eq. 5, Algorithm 2)."""

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.all_orders import all_orders, has_few_orders
from setrnn.objectives.objective import Objective, log_sum_exp
from setrnn.search.beam_search import search_orders


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, n_orders: int
) -> tuple[Tensor, Tensor]:
    """Take the top of a search; where all orders fit its width, there is nothing to search."""
    if has_few_orders(label_sets.shape[1], n_orders):
        return all_orders(label_sets)
    found = search_orders(decoder, encoding, label_sets[:, None], n_orders)
    return found.labels[:, 0], found.log_probs[:, 0] > -torch.inf


OBJECTIVE = Objective(choose_orders, log_sum_exp)
