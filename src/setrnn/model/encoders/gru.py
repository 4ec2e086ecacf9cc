"""Word vectors under a bidirectional GRU."""

# B documents, T words, D dimensions of a vector, H units per direction, M = 2 H, L labels

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from setrnn.config import Config, ModelSettings
from setrnn.data.vectors import word_vectors
from setrnn.model.devices import without_values
from setrnn.model.dropout import Dropout
from setrnn.model.interfaces import Encoding
from setrnn.progress import OnProgress

if TYPE_CHECKING:
    from setrnn.data.prepared import Prepared

UNKNOWN = 1  # a token id


class GRUEncoder(nn.Module):
    """Reads a document in both directions, over word vectors (n_tokens, D)."""

    def __init__(self, word_vectors: Tensor, settings: ModelSettings) -> None:
        super().__init__()
        units = settings.encoder_units // 2
        self.memory_size = 2 * units
        self.word_size = self.memory_size + word_vectors.shape[1]
        self.word_dropout = settings.word_dropout
        n_tokens, dimensions = word_vectors.shape
        self.words = nn.Embedding(n_tokens, dimensions, padding_idx=0, _weight=word_vectors)
        self.words.weight.requires_grad_(settings.word_vectors != "frozen")
        self.dropout = Dropout(settings.dropout)
        sizes = (dimensions, *[self.memory_size] * (settings.encoder_layers - 1))
        self.layers = nn.ModuleList(_Layer(size, units) for size in sizes)

    @classmethod
    def check(cls, config: Config) -> None:
        """Accept any settings: word vectors need no preparation."""

    @classmethod
    def from_data(
        cls, prepared: Prepared, config: Config, on_progress: OnProgress
    ) -> tuple[GRUEncoder, Tensor]:
        """Build the encoder over word vectors; labels have vectors in the same space, (L, D)."""
        vectors = _make_vectors(prepared, config, on_progress)
        n_tokens = prepared.encoder.n_tokens
        return cls(vectors[:n_tokens], config.model), vectors[n_tokens:]

    @classmethod
    def from_weights(cls, weights: Mapping[str, Tensor], settings: ModelSettings) -> GRUEncoder:
        """Build the encoder in the shape of saved weights; their values are assigned later."""
        with without_values():
            return cls(torch.empty_like(weights["words.weight"], device="meta"), settings)

    @property
    def n_tokens(self) -> int:
        """The number of token ids that the encoder knows."""
        return self.words.num_embeddings

    def forward(self, tokens: Tensor, lengths: Tensor) -> Encoding:
        """Encode tokens (B, T) of documents with given lengths (B,).

        Instead of packing, each row is reversed within its own length: padding stays after the
        words, where neither direction reads it before them. cuDNN is fastest on plain rows, and
        on a CPU packing costs more than it saves.
        """
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        is_word = positions < lengths[:, None]  # (B, T)
        turned = (lengths[:, None] - 1 - positions).clamp(min=0)
        vectors = self.dropout(self.words(self._drop_words(tokens)))  # (B, T, D)
        last = (lengths - 1)[:, None]
        memory = summary = vectors
        for number, layer in enumerate(self.layers):
            memory, summary = layer(self.dropout(memory) if number else memory, turned, last)
        memory = memory.masked_fill(~is_word[..., None], 0.0)
        closed = memory.new_zeros(is_word.shape).masked_fill(~is_word, -torch.inf)
        memory = self.dropout(memory)
        # A label finds its words by their vectors as well as by what the GRU makes of them.
        details = torch.cat((memory, vectors), dim=-1)
        return Encoding(memory, closed, self.dropout(summary), details)

    def _drop_words(self, tokens: Tensor) -> Tensor:
        """Replace some words by the unknown word, in training."""
        if not self.training or not self.word_dropout:
            return tokens
        numbers = torch.rand(tokens.shape, device=tokens.device, generator=self.dropout.generator)
        is_dropped = numbers < self.word_dropout
        return tokens.masked_fill(is_dropped & (tokens > UNKNOWN), UNKNOWN)


class _Layer(nn.Module):
    """A GRU in each direction."""

    def __init__(self, size: int, units: int) -> None:
        super().__init__()
        self.rightward = nn.GRU(size, units, batch_first=True)
        self.leftward = nn.GRU(size, units, batch_first=True)

    def forward(self, words: Tensor, turned: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states at the words (B, T, M), and those after reading all of them (B, M).

        `turned` (B, T) is the position of each word from the end, `last` (B, 1) that of the last.
        """
        right, _ = self.rightward(words)  # (B, T, H)
        left, _ = self.leftward(_take(words, turned))
        summary = torch.cat((_take(right, last), _take(left, last)), dim=-1)[:, 0]
        return torch.cat((right, _take(left, turned)), dim=-1), summary


def _take(vectors: Tensor, positions: Tensor) -> Tensor:
    """Take each document's vectors (B, T, ...) at its positions (B, N)."""
    return vectors.gather(1, positions[..., None].expand(-1, -1, vectors.shape[-1]))


def _make_vectors(prepared: Prepared, config: Config, on_progress: OnProgress) -> Tensor:
    """Return a vector for each token and each label: learned before, or random.

    Learned vectors are scaled, and a random part of the same scale is added: word vectors from few
    texts are all alike, and the random part tells them apart.
    """
    settings, scale = config.vectors, config.model.word_scale
    random = np.random.default_rng(settings.seed)
    if settings.source == "none":
        n_rows = prepared.encoder.n_tokens + len(prepared.labels)
        vectors = random.normal(0, 0.1, (n_rows, settings.dimensions)).astype(np.float32)
        vectors[0] = 0.0  # padding
        return torch.from_numpy(vectors)

    vectors = np.array(word_vectors(prepared, settings, on_progress))
    if scale:
        vectors *= scale / max(vectors.std(), 1e-12)
        vectors += random.normal(0, scale, vectors.shape).astype(np.float32)
        vectors[0] = 0.0
    return torch.from_numpy(vectors)
