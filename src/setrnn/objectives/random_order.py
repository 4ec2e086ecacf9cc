"""Uniformly random orders: Vinyals-RNN-uniform (Eq. 3)."""

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.all_orders import all_orders, has_few_orders
from setrnn.objectives.objective import Objective, mean


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, n_orders: int
) -> tuple[Tensor, Tensor]:
    """Shuffle each set; where all orders are few, take each once: the same mean, without noise."""
    B, S = label_sets.shape
    if has_few_orders(S, n_orders):
        return all_orders(label_sets)
    noise = torch.rand(B, n_orders, S, device=label_sets.device)
    noise = noise.masked_fill((label_sets < 0)[:, None], torch.inf)  # -1 stays behind
    orders = label_sets[:, None].expand(-1, n_orders, -1).gather(2, noise.argsort(2))
    return orders, torch.ones(B, n_orders, dtype=torch.bool, device=label_sets.device)


OBJECTIVE = Objective(choose_orders, mean)
