"""The exact probability of the set, over its subsets: set-RNN-exact, for order-free decoders."""

from __future__ import annotations

from typing import cast

from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding, OrderFree
from setrnn.objectives.objective import LabelSets
from setrnn.search.subset_sums import set_log_prob_by_subsets


def objective(decoder: Decoder, encoding: Encoding, label_sets: LabelSets, width: int) -> Tensor:
    """Return log p of each document's set: (B,).

    A lower bound for sets of more labels than are summed exactly.
    """
    order_free = cast("OrderFree", decoder)
    return set_log_prob_by_subsets(order_free, encoding, label_sets.labels, label_sets.sizes, width)
