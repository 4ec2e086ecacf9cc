"""An objective: which orders of a set are scored, and how their log-probabilities are combined."""

# B documents, K orders, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding


@dataclass(frozen=True)
class LabelSets:
    """The label sets of a batch."""

    labels: Tensor  # (B, S) ascending ids, which is by falling frequency; -1 fills up
    sizes: Tensor  # (B,) on the CPU: a GPU need not be waited for

    @classmethod
    def of(cls, labels: Tensor) -> LabelSets:
        """Count the labels of each set."""
        return cls(labels, (labels >= 0).sum(1).cpu())


@dataclass(frozen=True)
class Orders:
    """The orders of each set that are scored."""

    labels: Tensor  # (B, K, S) -1 fills up
    n_orders: Tensor  # (B,) on the CPU: the first so many of K count, at least one


# No gradient goes through the choice.
ChooseOrders = Callable[[Decoder, Encoding, LabelSets, int], Orders]
# log p of the orders (B, K), -inf where there is none, to a value (B,) to be maximised
Combine = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Objective:
    """What training maximises for each document."""

    choose_orders: ChooseOrders
    combine: Combine

    def __call__(
        self, decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
    ) -> Tensor:
        """Return the value of each document's set: (B,).

        All orders of a batch are scored in one pass.
        """
        was_training = decoder.training
        decoder.train(False)  # the decoder chooses orders without dropout's noise
        orders = self.choose_orders(decoder, encoding, label_sets, n_orders)
        decoder.train(was_training)
        is_order = torch.arange(orders.labels.shape[1]) < orders.n_orders[:, None]  # (B, K)
        lengths = label_sets.sizes[:, None].where(is_order, -1)
        return self.combine(decoder.score(encoding, orders.labels, lengths))


def mean(log_probs: Tensor) -> Tensor:
    """Average over the orders."""
    is_order = log_probs > -torch.inf
    return log_probs.where(is_order, 0.0).sum(1) / is_order.sum(1)


def log_sum_exp(log_probs: Tensor) -> Tensor:
    """Add up the probabilities of the orders, in log space."""
    return log_probs.logsumexp(1)


def the_one(log_probs: Tensor) -> Tensor:
    """Take the only order."""
    return log_probs[:, 0]
