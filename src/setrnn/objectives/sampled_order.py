"""Orders drawn from the model: Vinyals-RNN-sample (Eq. 4)."""

# B documents, C labels of the largest set, K orders; sets and orders are padded with -1

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.objective import LabelSets, OrderObjective, Orders, mean
from setrnn.search.replayed import replay


def choose_orders(
    decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
) -> Orders:
    """Draw orders from the model; a likely order may be drawn more than once."""
    orders = replay(sample_orders, decoder, encoding, label_sets.labels, n_orders)
    orders = orders[:, :, : label_sets.labels.shape[1]]  # a replay has more, padded
    # A set of one label, or none, has one order: it is scored once.
    return Orders(orders, torch.where(label_sets.sizes > 1, n_orders, 1))


def draw_index(log_probs: Tensor) -> Tensor:
    """Draw a place of the last dimension, in proportion to the probabilities there."""
    # The largest of log p + Gumbel noise is a draw from p.
    noise = -torch.empty_like(log_probs).exponential_().log()
    return (log_probs + noise).argmax(-1)


@torch.no_grad()
def sample_orders(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, n_orders: int
) -> Tensor:
    """Draw orders of given sets (B, C) label by label: (B, K, C).

    Each step draws one of the labels that are left, in proportion to their probabilities.
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
        drawn = draw_index(log_probs)[..., None]  # (B, K, 1)
        is_drawn = is_left.gather(2, drawn)[..., 0]  # False when no label is left
        previous = columns.gather(2, drawn)[..., 0].where(is_drawn, stop)
        orders[:, :, step] = previous.where(is_drawn, -1)
        is_left = is_left.scatter(2, drawn, False)
    return orders


OBJECTIVE = OrderObjective(choose_orders, mean)
