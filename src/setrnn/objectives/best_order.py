"""The model's own best order: Vinyals-RNN-max (Eq. 2)."""

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.objective import Objective, the_one
from setrnn.search.beam_search import search_orders


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, n_orders: int
) -> tuple[Tensor, Tensor]:
    """Take the best of a search as wide as `n_orders`."""
    found = search_orders(decoder, encoding, label_sets[:, None], n_orders)
    orders = found.labels[:, 0, :1]
    return orders, torch.ones(orders.shape[:2], dtype=torch.bool, device=orders.device)


OBJECTIVE = Objective(choose_orders, the_one)
