"""Searches through given sets on a GPU: each is recorded once, then replayed.

A search is a few hundred small operations, and a GPU waits for each to be started. A CUDA graph
starts them all at once. It has fixed shapes: documents, words and labels are padded to a few sizes,
and a size is recorded when it has been met often enough to pay.
"""

# B documents, T words, C labels of a set, K beams

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn.functional import pad

from setrnn.model.interfaces import Decoder, Encoding

DOCUMENTS = (16, 32, 64, 96, 128)
WORDS = (32, 64, 96, 128, 192, 256, 384, 512)
LABELS = (4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
N_BEFORE = 2  # searches of a size that are not recorded
MOST_RECORDED = 200

Shape = tuple[int, int, int, int]  # B, T, C, K
# From a decoder, documents, sets (B, C) padded with -1 and a beam width K to a tensor (B, ...). It
# waits for nothing on the GPU, and padded documents, words and labels change nothing but its shape.
Search = Callable[[Any, Encoding, Tensor, int], Tensor]


@torch.no_grad()  # else the recorded inputs would keep every step's gradients
def replay(
    search: Search, decoder: Decoder, encoding: Encoding, label_sets: Tensor, beam_width: int
) -> Tensor:
    """Return what a search finds, for all documents: with more labels than given, padded.

    On a CPU it is the search itself.
    """
    if not label_sets.is_cuda:
        return search(decoder, encoding, label_sets, beam_width)
    replays = _REPLAYS.setdefault(decoder, _Replays())
    return replays.search(search, decoder, encoding, label_sets, beam_width)


class _Replays:
    """The recorded searches of one decoder."""

    def __init__(self) -> None:
        self.searches: dict[tuple[Search, Shape], _Recorded] = {}
        self.n_met: Counter[tuple[Search, Shape]] = Counter()
        self.pool: Any = None  # of memory, which all graphs share

    def search(
        self,
        search: Search,
        decoder: Decoder,
        encoding: Encoding,
        label_sets: Tensor,
        beam_width: int,
    ) -> Tensor:
        shape = padded_shape(encoding, label_sets, beam_width)
        if shape is None or torch.is_autocast_enabled("cuda"):
            return search(decoder, encoding, label_sets, beam_width)
        key = (search, shape)
        self.n_met[key] += 1
        known = self.searches.get(key)
        if known is None:
            is_worth = self.n_met[key] > N_BEFORE and len(self.searches) < MOST_RECORDED
            if not is_worth:
                return search(decoder, encoding, label_sets, beam_width)
            known = self.searches[key] = _Recorded(
                search, decoder, encoding, label_sets, shape, self.pool
            )
            self.pool = known.graph.pool()
        return known.replay(encoding, label_sets)


class _Recorded:
    """One search of fixed shapes. The weights are read where they are: they may change."""

    def __init__(
        self,
        search: Search,
        decoder: Decoder,
        encoding: Encoding,
        label_sets: Tensor,
        shape: Shape,
        pool: Any,  # noqa: ANN401 (a handle of torch)
    ) -> None:
        self.encoding, self.label_sets = pad_search(encoding, label_sets, shape)
        K = shape[3]
        side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # the first call of an operation may allocate
            search(decoder, self.encoding, self.label_sets, K)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        # Another thread prepares the next batch meanwhile.
        with torch.cuda.graph(self.graph, pool=pool, capture_error_mode="thread_local"):
            self.found = search(decoder, self.encoding, self.label_sets, K)

    def replay(self, encoding: Encoding, label_sets: Tensor) -> Tensor:
        B, T = encoding.closed.shape
        C = label_sets.shape[1]
        own = self.encoding
        own.closed.fill_(-torch.inf)
        own.closed[B:] = 0.0
        self.label_sets.fill_(-1)
        own.memory[:B, :T].copy_(encoding.memory)
        own.closed[:B, :T].copy_(encoding.closed)
        own.summary[:B].copy_(encoding.summary)
        if own.evidence is not None and encoding.evidence is not None:
            own.evidence[:B].copy_(encoding.evidence)
        if own.shortlist is not None and encoding.shortlist is not None:
            own.shortlist[:B].copy_(encoding.shortlist)
        self.label_sets[:B, :C].copy_(label_sets)
        self.graph.replay()
        return self.found[:B].clone()


_REPLAYS: WeakKeyDictionary[Decoder, _Replays] = WeakKeyDictionary()


def padded_shape(encoding: Encoding, label_sets: Tensor, beam_width: int) -> Shape | None:
    """Return the sizes to pad a search to; None if it is larger than all of them."""
    B, T = encoding.closed.shape
    sizes = ((B, DOCUMENTS), (T, WORDS), (label_sets.shape[1], LABELS))
    if any(size > known[-1] for size, known in sizes):
        return None
    documents, words, labels = (known[bisect_left(known, size)] for size, known in sizes)
    return documents, words, labels, beam_width


@torch.no_grad()
def pad_search(encoding: Encoding, label_sets: Tensor, shape: Shape) -> tuple[Encoding, Tensor]:
    """Pad documents, words and labels: added documents have one word, of zeros, and no label."""
    B, T = encoding.closed.shape
    more, words, labels = shape[0] - B, shape[1] - T, shape[2] - label_sets.shape[1]
    closed = pad(encoding.closed, (0, words), value=-torch.inf)
    evidence, shortlist = encoding.evidence, encoding.shortlist
    padded = replace(
        encoding,
        memory=pad(encoding.memory, (0, 0, 0, words, 0, more)),
        closed=pad(closed, (0, 0, 0, more)),
        summary=pad(encoding.summary, (0, 0, 0, more)),
        details=None,
        evidence=None if evidence is None else pad(evidence, (0, 0, 0, more)),
        shortlist=None if shortlist is None else pad(shortlist, (0, 0, 0, more)),
    )
    return padded, pad(label_sets, (0, labels, 0, more), value=-1)
