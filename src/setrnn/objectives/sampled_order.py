"""Orders drawn from the model: Vinyals-RNN-sample (Eq. 4)."""

from __future__ import annotations

import torch

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.objective import LabelSets, Objective, Orders, mean
from setrnn.search.sampling import sample_orders


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
) -> Orders:
    """Draw from the model, label by label among those left; a likely order may be drawn again."""
    orders = sample_orders(decoder, encoding, label_sets.labels, n_orders)
    # A set of one label, or none, has one order: it need not be scored again and again.
    return Orders(orders, torch.where(label_sets.sizes > 1, n_orders, 1))


OBJECTIVE = Objective(choose_orders, mean)
