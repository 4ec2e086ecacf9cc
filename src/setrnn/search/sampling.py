"""Orders drawn from the model, restricted to a set."""

# B documents, C labels of the largest set, K orders

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding


@torch.no_grad()
def sample_orders(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, n_orders: int
) -> Tensor:
    """Draw orders of given sets (B, C) label by label: (B, K, C), -1 fills up.

    At each step a label of the set that is left is drawn by its probability among those.
    """
    B, C = label_sets.shape
    stop = decoder.n_labels
    state = tuple(each.expand(B, n_orders, *each.shape[2:]) for each in decoder.start(encoding))
    previous = label_sets.new_full((B, n_orders), stop)
    is_left = (label_sets >= 0)[:, None].repeat(1, n_orders, 1)  # (B, K, C)
    columns = label_sets.where(label_sets >= 0, stop)[:, None].expand(-1, n_orders, -1)
    orders = label_sets.new_full((B, n_orders, C), -1)
    for step in range(C):
        log_probs, state = decoder.step(encoding, state, previous)
        log_probs = log_probs.gather(2, columns).masked_fill(~is_left, -torch.inf)
        # The largest of log p + Gumbel noise is a draw from p.
        noise = -torch.empty_like(log_probs).exponential_().log()
        drawn = (log_probs + noise).argmax(2, keepdim=True)  # (B, K, 1)
        is_drawn = is_left.gather(2, drawn)[..., 0]  # False once a set is used up
        previous = columns.gather(2, drawn)[..., 0].where(is_drawn, stop)
        orders[:, :, step] = previous.where(is_drawn, -1)
        is_left = is_left.scatter(2, drawn, False)
    return orders
