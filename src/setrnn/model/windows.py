"""Long documents: an encoder reads them in windows, and the memory of a document is that of all."""

# B documents, T words, C words of a window, N windows of the longest document, R windows of all
# documents, M memory size

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from setrnn.config import TextSettings
from setrnn.model.interfaces import Encoder, Encoding


def find_window(settings: TextSettings) -> int | None:
    """Return how many words an encoder reads at once; None if a document is one window."""
    return settings.window if settings.windows > 1 else None


def encode_windows(
    encoder: Encoder, tokens: Tensor, lengths: Tensor, window: int | None
) -> Encoding:
    """Encode tokens (B, T) of documents with given lengths (B,), in windows of `window` words.

    The windows of all documents are rows of one batch: their recurrence or self-attention is no
    longer than a window. All windows of a document but the last are full, so their memories one
    after the other are the memory of the document. Its summary is the mean of theirs, weighted by
    their words.
    """
    B, T = tokens.shape
    if window is None or window >= T:
        return encoder(tokens, lengths)
    N = -(-T // window)
    starts = torch.arange(0, T, window, device=tokens.device)
    sizes = (lengths[:, None] - starts).clamp(0, window).flatten()  # (B * N,)
    rows = sizes.nonzero()[:, 0]  # (R,) windows with words
    read = encoder(pad(tokens, (0, N * window - T)).view(-1, window)[rows], sizes[rows])

    def join(part: Tensor, fill: float = 0.0) -> Tensor:  # (R, C, ...) to (B, T, ...)
        full = part.new_full((B * N, *part.shape[1:]), fill).index_copy(0, rows, part)
        return full.view(B, N * window, *part.shape[2:])[:, :T]

    share = sizes[rows, None] / lengths[rows // N, None]  # (R, 1)
    parts = read.summary * share
    return Encoding(
        join(read.memory),
        join(read.closed, -torch.inf),
        parts.new_zeros(B, parts.shape[1]).index_add(0, rows // N, parts),
        None if read.details is None else join(read.details),
    )
