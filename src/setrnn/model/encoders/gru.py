"""Word vectors under a bidirectional GRU."""

# B documents, T words, D dimensions of a word vector, H units a direction, M = 2 H

from __future__ import annotations

import torch
from torch import Tensor, nn

from setrnn.config import ModelSettings
from setrnn.model.interfaces import Encoding

UNKNOWN = 1  # a token id


class GRUEncoder(nn.Module):
    """Reads a document in both directions."""

    def __init__(self, word_vectors: Tensor, settings: ModelSettings) -> None:
        super().__init__()
        units = settings.encoder_units // 2
        self.memory_size = 2 * units
        self.word_dropout = settings.word_dropout
        n_tokens, dimensions = word_vectors.shape
        self.words = nn.Embedding(n_tokens, dimensions, padding_idx=0, _weight=word_vectors)
        self.words.weight.requires_grad_(settings.word_vectors != "frozen")
        self.dropout = nn.Dropout(settings.dropout)
        self.rightward = nn.GRU(dimensions, units, batch_first=True)
        self.leftward = nn.GRU(dimensions, units, batch_first=True)

    @property
    def n_tokens(self) -> int:
        """Count the token ids it knows."""
        return self.words.num_embeddings

    def forward(self, tokens: Tensor, lengths: Tensor) -> Encoding:
        """Encode tokens (B, T), of which each row has its length (B,).

        Instead of packing, each row is turned round by its own length: padding stays behind the
        words, where neither direction sees it in time. Plain rows are what cuDNN has its fastest
        kernels for, and on a CPU packing costs more than it saves.
        """
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        is_word = positions < lengths[:, None]  # (B, T)
        turned = (lengths[:, None] - 1 - positions).clamp(min=0)
        vectors = self.dropout(self.words(self._drop_words(tokens)))  # (B, T, D)
        right, _ = self.rightward(vectors)  # (B, T, H)
        left, _ = self.leftward(_take(vectors, turned))
        last = (lengths - 1)[:, None]
        summary = torch.cat((_take(right, last), _take(left, last)), dim=-1)[:, 0]  # (B, M)
        memory = torch.cat((right, _take(left, turned)), dim=-1)  # (B, T, M)
        memory = memory.masked_fill(~is_word[..., None], 0.0)
        closed = memory.new_zeros(is_word.shape).masked_fill(~is_word, -torch.inf)
        return Encoding(self.dropout(memory), closed, self.dropout(summary))

    def _drop_words(self, tokens: Tensor) -> Tensor:
        """Make some words unknown, in training."""
        if not self.training or not self.word_dropout:
            return tokens
        is_dropped = torch.rand(tokens.shape, device=tokens.device) < self.word_dropout
        return tokens.masked_fill(is_dropped & (tokens > UNKNOWN), UNKNOWN)


def _take(vectors: Tensor, positions: Tensor) -> Tensor:
    """Take each document's vectors (B, T, ...) at its positions (B, N)."""
    return vectors.gather(1, positions[..., None].expand(-1, -1, vectors.shape[-1]))
