"""Orders without a search: a table lists all orders of a set of few labels."""

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
from setrnn.search.prefix_tree import PrefixTree, can_share_prefixes, search_in_tree
from setrnn.search.replayed import replay


def largest_listed_size(n_orders: int) -> int:
    """Return the largest set size that has at most `n_orders` orders."""
    size = 1
    while factorial(size + 1) <= n_orders:
        size += 1
    return size


def count_orders(set_sizes: Tensor, n_orders: int) -> Tensor:
    """Return the number of orders that a search with beam `n_orders` finds per set: (B,)."""
    largest = largest_listed_size(n_orders)
    counts = torch.tensor([factorial(size) for size in range(largest + 1)] + [n_orders])
    return counts[set_sizes.clamp(max=largest + 1)]


def fill_in_all_orders(label_sets: LabelSets, orders: Tensor) -> Tensor:
    """Replace orders (B, K, S) by all orders of the set, for sets that have at most K."""
    K, S = orders.shape[1:]
    is_small = label_sets.sizes <= largest_listed_size(K)
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

    Smaller sets are returned as they are.
    """
    labels = label_sets.labels
    orders = labels[:, None].repeat(1, n_orders, 1)
    is_large = label_sets.sizes > largest_known
    if not is_large.any():
        return orders
    rows = send(is_large.nonzero()[:, 0], labels.device)
    encoding, sets = encoding.rows(rows), labels[rows, : int(label_sets.sizes.max())]
    if can_share_prefixes(decoder, encoding):
        tree, every = PrefixTree(decoder, encoding), torch.arange(len(rows))
        found, _ = search_in_tree(tree, every, sets, n_orders, sets.shape[1])
    else:
        found = replay(find_orders, decoder, encoding, sets, n_orders)[:, :, : sets.shape[1]]
    orders[rows, : found.shape[1], : found.shape[2]] = found
    return orders


def find_orders(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, beam_width: int
) -> Tensor:
    """Return the best orders (B, K, S) of given sets (B, S), padded with -1."""
    return search_orders(decoder, encoding, label_sets[:, None], beam_width).labels[:, 0]


@lru_cache(maxsize=64)
def _tables(K: int, S: int, device: torch.device) -> Tensor:
    """Return all orders of 0 ... n - 1 for each set size n with at most K: (sizes, K, S).

    Padding after the labels of a set stays there.
    """
    table = torch.arange(S).repeat(largest_listed_size(K) + 1, K, 1)
    for size in range(min(largest_listed_size(K), S) + 1):
        orders = torch.tensor(list(permutations(range(size))), dtype=torch.long)
        table[size, : len(orders), :size] = orders
    return table.to(device)
