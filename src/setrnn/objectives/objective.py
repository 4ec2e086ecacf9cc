"""What an objective is; most choose orders of each set and combine their log-probabilities."""

# B documents, N sets, K orders, S labels of the largest set; sets and orders are padded with -1

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from setrnn.model.dropout import without_dropout
from setrnn.model.interfaces import Decoder, Encoding


@dataclass(frozen=True)
class LabelSets:
    """The label sets of a batch: one per document, unless `documents` says otherwise."""

    labels: Tensor  # (N, S) ascending ids, which is in descending order of frequency
    sizes: Tensor  # (N,) on the CPU: reading them does not wait for a GPU
    documents: Tensor | None = None  # (N,) the document of each set; None for one per document
    weights: Tensor | None = None  # (N,) for the objective of a student; None for 1

    def expand(self, encoding: Encoding) -> Encoding:
        """Return the document of each set."""
        return encoding if self.documents is None else encoding.rows(self.documents)


class Objective(Protocol):
    """What training maximises for each document: an entry of `OBJECTIVES`.

    A function, or an `OrderObjective`. `setrnn.checks.check_objective` runs one; CONTRIBUTING.md
    adds one.

    Example:
        >>> from setrnn.objectives import OBJECTIVES
        >>> isinstance(OBJECTIVES["set-probability"], OrderObjective)
        True
    """

    def __call__(
        self,
        decoder: Any,  # noqa: ANN401 (of the kind that the objective trains)
        encoding: Encoding,
        label_sets: LabelSets,
        n_orders: int,
    ) -> Tensor:
        """Return the value of each set: (N,)."""


@dataclass(frozen=True)
class Orders:
    """The orders of each set that are scored."""

    labels: Tensor  # (B, K, S)
    n_orders: Tensor  # (B,) on the CPU: the number of orders that count, the first of K


# No gradient flows through the choice.
ChooseOrders = Callable[[Decoder, Encoding, LabelSets, int], Orders]
# From log p of the orders (B, K), -inf where there is none, to a value (B,) to be maximised.
Combine = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class OrderObjective:
    """An objective that chooses orders of each set and combines their log-probabilities."""

    choose_orders: ChooseOrders
    combine: Combine

    def __call__(
        self, decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int
    ) -> Tensor:
        """Return the value of each set: (N,).

        All orders of a batch are scored in one pass.
        """
        encoding = label_sets.expand(encoding)
        with without_dropout(decoder):
            orders = self.choose_orders(decoder, encoding, label_sets, n_orders)
        is_order = torch.arange(orders.labels.shape[1]) < orders.n_orders[:, None]  # (B, K)
        lengths = label_sets.sizes[:, None].where(is_order, -1)
        return self.combine(decoder.score(encoding, orders.labels, lengths))


def mean(log_probs: Tensor) -> Tensor:
    """Average over the orders."""
    is_order = log_probs > -torch.inf
    return log_probs.where(is_order, 0.0).sum(1) / is_order.sum(1)


def log_sum_exp(log_probs: Tensor) -> Tensor:
    """Return the log of the sum of the probabilities of the orders."""
    return log_probs.logsumexp(1)


def the_one(log_probs: Tensor) -> Tensor:
    """Take the only order."""
    return log_probs[:, 0]
