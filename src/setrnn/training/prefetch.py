"""Batches made in a thread while the network works."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def prefetched(
    make: Callable[[Item], Made], items: Iterable[Item], n_ahead: int = 4
) -> Iterator[Made]:
    """Yield `make(item)` in order, a few made ahead."""
    remaining = iter(items)
    with ThreadPoolExecutor(1) as thread:
        waiting: deque[Future[Made]] = deque()
        for item in islice(remaining, n_ahead):
            waiting.append(thread.submit(make, item))
        try:
            while waiting:
                made = waiting.popleft().result()
                for item in islice(remaining, 1):
                    waiting.append(thread.submit(make, item))
                yield made
        finally:
            for future in waiting:
                future.cancel()
