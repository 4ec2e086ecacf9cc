"""Sets of few labels need no search: all their orders come from a table."""

# B documents, K orders, S labels of the largest set

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import factorial

import torch
from torch import Tensor

from setrnn.data.batches import send
from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.objective import LabelSets
from setrnn.search.beam_search import search_orders

SIZE_CLASSES = (1, 2, 3, 4, 6, 9, 13)  # the least set sizes of sets that are searched together


def few(n_orders: int) -> int:
    """Return the largest set size whose orders are at most `n_orders`."""
    size = 1
    while factorial(size + 1) <= n_orders:
        size += 1
    return size


def count_orders(set_sizes: Tensor, n_orders: int) -> Tensor:
    """Return how many orders a search as wide as `n_orders` finds: all, or so many."""
    largest = few(n_orders)
    counts = torch.tensor([factorial(size) for size in range(largest + 1)] + [n_orders])
    return counts[set_sizes.clamp(max=largest + 1)]


def all_orders(label_sets: LabelSets, orders: Tensor) -> Tensor:
    """Put all orders of the sets that have at most K into orders (B, K, S)."""
    K, S = orders.shape[1:]
    is_small = label_sets.sizes <= few(K)
    rows = send(is_small.nonzero()[:, 0], orders.device)
    sizes = send(label_sets.sizes[is_small], orders.device)
    places = _tables(K, S, orders.device)[sizes]
    labels = label_sets.labels[rows, None].expand(-1, K, -1)
    return orders.index_copy(0, rows, labels.gather(2, places))


@torch.no_grad()
def search_large_sets(
    decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int, largest_known: int
) -> Tensor:
    """Search for the best orders of the sets larger than `largest_known`: (B, K, S).

    The smaller sets are given as they stand.
    """
    labels = label_sets.labels
    orders = labels[:, None].repeat(1, n_orders, 1)
    for rows in _alike(label_sets.sizes, largest_known, on_gpu=labels.is_cuda):
        size = int(label_sets.sizes[rows].max())
        rows = send(rows, labels.device)
        found = search_orders(decoder, encoding.rows(rows), labels[rows, None, :size], n_orders)
        K, S = found.labels.shape[2:]
        orders[rows, :K, :S] = found.labels[:, 0]
    return orders


def _alike(sizes: Tensor, largest_known: int, on_gpu: bool) -> list[Tensor]:
    """Group the larger sets for their searches.

    A CPU spends its time on arithmetic: sets of alike size go together. A GPU spends it on the
    number of steps: one search for all.
    """
    is_large = sizes > largest_known
    if on_gpu:
        groups = [is_large]
    else:
        classes = torch.bucketize(sizes, torch.tensor(SIZE_CLASSES), right=True)
        groups = [is_large & (classes == each) for each in sorted(set(classes[is_large].tolist()))]
    return [group.nonzero()[:, 0] for group in groups if group.any()]


@lru_cache(maxsize=64)
def _tables(K: int, S: int, device: torch.device) -> Tensor:
    """Return the orders of 0 ... n - 1 for each set size n that has at most K: (sizes, K, S).

    What lies behind a set's labels stays behind them.
    """
    table = torch.arange(S).repeat(few(K) + 1, K, 1)
    for size in range(min(few(K), S) + 1):
        orders = torch.tensor(list(permutations(range(size))), dtype=torch.long)
        table[size, : len(orders), :size] = orders
    return table.to(device)
