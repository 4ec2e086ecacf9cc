"""The exact probability of the set, over its subsets: set-RNN-exact, for order-free decoders."""

from __future__ import annotations

from typing import cast

from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding, OrderFree
from setrnn.objectives.objective import LabelSets
from setrnn.search.subset_sums import set_log_prob_by_subsets


def objective(decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int) -> Tensor:
    """Return log p of each set: (N,).

    For sets with more labels than are summed exactly, it is a lower bound, through the best
    `n_orders` subsets of each size.
    """
    order_free = cast("OrderFree", decoder)
    labels, sizes = label_sets.labels, label_sets.sizes
    return set_log_prob_by_subsets(
        order_free, encoding, labels, sizes, width=n_orders, documents=label_sets.documents
    )
