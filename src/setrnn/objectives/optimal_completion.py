"""Optimal completion distillation: what should follow the model's own labels (Tsai and Lee 2020).

The model draws a sequence from itself. After each of its prefixes, right or wrong, every true
label that is not emitted yet is equally good, and STOP once there is none: this is the optimal
policy at temperature 0. No order is needed, and training meets the prefixes of prediction.
"""

# B documents, C labels of the largest set, S labels and Q steps of the longest sequence,
# V = labels + STOP; sets and sequences are padded with -1

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.objective import LabelSets
from setrnn.objectives.own_sequences import draw, emit


def objective(decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int) -> Tensor:
    """Return -Σ_t KL(optimal policy || model) along one drawn sequence per document: (B,)."""
    encoding = label_sets.expand(encoding)
    drawn = emit(draw, decoder, encoding, label_sets)
    log_probs = decoder.follow(encoding, drawn.labels, drawn.lengths)  # (B, Q, V)
    Q = log_probs.shape[1]
    is_left = find_left(label_sets.labels, drawn.labels)[:, :Q]  # (B, Q, C)
    stop = decoder.n_labels
    columns = label_sets.labels.where(label_sets.labels >= 0, stop)[:, None].expand(-1, Q, -1)
    n_left = is_left.sum(2)
    n_optimal = n_left.clamp(min=1)  # STOP is the only one when no label is left
    of_labels = log_probs.gather(2, columns).where(is_left, 0.0).sum(2)
    of_optimal = of_labels.where(n_left > 0, log_probs[:, :, stop])
    # The policy is 1 / n on each of n outputs: -KL = mean of log p + log n.
    of_steps = of_optimal / n_optimal + n_optimal.log()
    return of_steps.where(drawn.mark_steps(Q), 0.0).sum(1)


def find_left(labels: Tensor, drawn: Tensor) -> Tensor:
    """Mark the true labels (B, C) not emitted before each step of drawn (B, S): (B, S + 1, C)."""
    is_emitted = labels[:, None] == drawn[:, :, None]  # (B, S, C)
    was_emitted = torch.nn.functional.pad(is_emitted.cumsum(1), (0, 0, 1, 0)) > 0
    return (labels >= 0)[:, None] & ~was_emitted
