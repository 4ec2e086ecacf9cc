"""Optimal completion distillation: what should follow the model's own labels (Tsai and Lee 2020).

The model draws a sequence from itself. After each of its prefixes, right or wrong, every true
label that is not emitted yet is equally good, and STOP once there is none: this is the optimal
policy at temperature 0. No order is needed, and training meets the prefixes of prediction.
"""

# B documents, C labels of the largest set, V = labels + STOP; sets are padded with -1

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.objective import LabelSets
from setrnn.objectives.own_sequences import draw, emit


def objective(decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int) -> Tensor:
    """Return -Σ_t KL(optimal policy || model) along one drawn sequence per document: (B,)."""
    encoding = label_sets.expand(encoding)
    stop = decoder.n_labels
    is_left = label_sets.labels >= 0  # (B, C) true labels that are not emitted yet
    columns = label_sets.labels.where(is_left, stop)
    values = torch.zeros(len(columns), device=columns.device)
    for step in emit(decoder, encoding, label_sets.sizes, draw):
        n_left = is_left.sum(1)
        n_optimal = n_left.clamp(min=1)  # STOP is the only one when no label is left
        of_labels = step.log_probs.gather(1, columns).where(is_left, 0.0).sum(1)
        of_optimal = of_labels.where(n_left > 0, step.log_probs[:, stop])
        # The policy is 1 / n on each of n outputs: -KL = mean of log p + log n.
        of_step = of_optimal / n_optimal + n_optimal.log()
        values = values + of_step.where(step.is_open, 0.0)
        is_left = is_left & (columns != step.chosen[:, None])
    return values
