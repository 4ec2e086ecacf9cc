"""Streams: cut them into batches, and compute ahead of whoever reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
Made = TypeVar("Made")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut a stream into lists of at most `size` items."""
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def prefetch(make: Callable[[T], Made], items: Iterable[T], n_ahead: int = 4) -> Iterator[Made]:
    """Yield `make(item)` in order; a thread makes a few ahead while the caller computes."""
    remaining = iter(items)
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(make, item) for item in islice(remaining, n_ahead))
        try:
            while waiting:
                made = waiting.popleft().result()
                waiting.extend(thread.submit(make, item) for item in islice(remaining, 1))
                yield made
        finally:
            for future in waiting:
                future.cancel()
