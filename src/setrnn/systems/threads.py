"""Work shared among threads, a piece each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Found = TypeVar("Found")


def in_threads(work: Callable[[Piece], Found], pieces: Iterable[Piece]) -> Iterator[Found]:
    """Work on pieces side by side, in as many threads as torch has; yield in their order.

    Each has torch to itself: with one thread, and so with the same result however many there are.
    """
    n_threads = torch.get_num_threads()
    if n_threads == 1:
        yield from map(work, pieces)
        return
    pool = ThreadPoolExecutor(n_threads, "setrnn", torch.set_num_threads, (1,))
    try:
        yield from pool.map(work, pieces)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(n_threads)  # a part of it is one number for all threads
