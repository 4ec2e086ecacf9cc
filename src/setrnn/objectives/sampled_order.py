"""Orders drawn from the model: Vinyals-RNN-sample (Eq. 4)."""

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.objective import Objective, mean
from setrnn.search.sampling import sample_orders


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, n_orders: int
) -> tuple[Tensor, Tensor]:
    """Draw from the model, restricted to the set; a likely order may be drawn again."""
    orders = sample_orders(decoder, encoding, label_sets, n_orders)
    return orders, torch.ones(orders.shape[:2], dtype=torch.bool, device=orders.device)


OBJECTIVE = Objective(choose_orders, mean)
