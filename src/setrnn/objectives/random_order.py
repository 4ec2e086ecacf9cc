"""Uniformly random orders: Vinyals-RNN-uniform (Eq. 3)."""

from __future__ import annotations

import torch

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.few_orders import count_orders, fill_in_all_orders
from setrnn.objectives.objective import LabelSets, OrderObjective, Orders, mean


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
) -> Orders:
    """Shuffle each set; a set with few orders has each once: the same mean, without noise."""
    labels = label_sets.labels
    B, S = labels.shape
    noise = torch.rand(B, n_orders, S, device=labels.device)
    noise = noise.masked_fill((labels < 0)[:, None], torch.inf)  # padding stays last
    orders = labels[:, None].expand(-1, n_orders, -1).gather(2, noise.argsort(2))
    orders = fill_in_all_orders(label_sets, orders)
    return Orders(orders, count_orders(label_sets.sizes, n_orders))


OBJECTIVE = OrderObjective(choose_orders, mean)
