"""All orders of small sets, from a table."""

# B documents, N = the number of orders kept, S labels of the largest set

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import factorial

import torch
from torch import Tensor


def has_few_orders(set_size: int, n_orders: int) -> bool:
    """Tell whether all orders of sets up to this size are at most `n_orders`."""
    return set_size <= n_orders and factorial(set_size) <= n_orders


def all_orders(label_sets: Tensor) -> tuple[Tensor, Tensor]:
    """Return all orders of each set (B, S), -1 fills up: (B, N, S), and which count (B, N)."""
    B, S = label_sets.shape
    table, counts = _tables(S, label_sets.device)
    set_sizes = (label_sets >= 0).sum(1)
    places = table[set_sizes]  # (B, N, S)
    orders = label_sets[:, None].expand(-1, places.shape[1], -1).gather(2, places)
    return orders, counts[set_sizes]


@lru_cache(maxsize=32)
def _tables(S: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the orders of 0 ... n - 1 for each set size n up to S, and how many count.

    What lies behind a set's labels stays behind them.
    """
    N = factorial(S)
    table = torch.arange(S).repeat(S + 1, N, 1)  # (S + 1, N, S)
    counts = torch.zeros(S + 1, N, dtype=torch.bool)
    for size in range(S + 1):
        orders = torch.tensor(list(permutations(range(size))), dtype=torch.long)
        table[size, : len(orders), :size] = orders
        counts[size, : len(orders)] = True
    return table.to(device), counts.to(device)
