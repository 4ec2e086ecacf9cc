"""An objective: which orders of a set are scored, and how their log-probabilities are combined."""

# B documents, K orders, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding

# (decoder, documents, label sets (B, S), K) to orders (B, K, S) and which of them count (B, K).
# A set has at least one order that counts; -1 fills up. No gradient goes through the choice.
ChooseOrders = Callable[[Decoder, Encoding, Tensor, int], tuple[Tensor, Tensor]]
# log p of the orders (B, K), which of them count (B, K), to a value (B,) to be maximised
Combine = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Objective:
    """What training maximises for each document."""

    choose_orders: ChooseOrders
    combine: Combine

    def __call__(
        self, decoder: Decoder, encoding: Encoding, label_sets: Tensor, n_orders: int
    ) -> Tensor:
        """Return the value of each document's set (B, S), -1 fills up: (B,).

        All orders of a batch are scored in one pass.
        """
        was_training = decoder.training
        decoder.train(False)  # orders are chosen by the model itself, without dropout's noise
        orders, counts = self.choose_orders(decoder, encoding, label_sets, n_orders)
        decoder.train(was_training)
        return self.combine(decoder.score(encoding, orders), counts)


def mean(log_probs: Tensor, counts: Tensor) -> Tensor:
    """Average over the orders that count."""
    return log_probs.masked_fill(~counts, 0.0).sum(1) / counts.sum(1)


def log_sum_exp(log_probs: Tensor, counts: Tensor) -> Tensor:
    """Add up the probabilities of the orders that count, in log space."""
    return log_probs.masked_fill(~counts, -torch.inf).logsumexp(1)


def the_one(log_probs: Tensor, counts: Tensor) -> Tensor:
    """Take the only order."""
    return log_probs[:, 0]
