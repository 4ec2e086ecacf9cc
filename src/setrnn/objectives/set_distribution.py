"""The set distribution of a teacher: the cross-entropy over its most probable sets."""

# B documents, N sets

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import AnyDecoder, Encoding
from setrnn.objectives import exact_set, independent_labels, set_probability
from setrnn.objectives.objective import LabelSets, Objective

LEAST_REST = 1e-4  # p(all other sets): a smaller one would give gradients without bounds

# log p(set) by what the decoder emits.
SET_LOG_PROB: dict[str, Objective] = {
    "sequences": set_probability.OBJECTIVE,
    "sets": exact_set.objective,
    "labels": independent_labels.objective,
}


def objective(
    decoder: AnyDecoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
) -> Tensor:
    """Return sum_s q(s) log p(s) + q(rest) log p(rest) of each document: (B,).

    q is the weight of each set s of the document, and `rest` stands for all other sets. Without
    weights, it is log p of the only set.
    """
    log_probs = SET_LOG_PROB[decoder.emits](decoder, encoding, label_sets, n_orders)  # (N,)
    if label_sets.weights is None or label_sets.documents is None:
        return log_probs
    none = log_probs.new_zeros(len(encoding.summary))
    known = none.index_add(0, label_sets.documents, label_sets.weights * log_probs)
    own_rest = 1 - none.index_add(0, label_sets.documents, log_probs.exp())
    rest = 1 - none.index_add(0, label_sets.documents, label_sets.weights)
    return known + rest.clamp(min=0) * torch.log(own_rest.clamp(min=LEAST_REST))
