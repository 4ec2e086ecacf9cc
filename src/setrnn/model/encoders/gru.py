"""Word vectors under a bidirectional GRU."""

# B documents, T words, D dimensions of a word vector, H units a direction, M = 2 H

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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
        self.words = nn.Embedding(*word_vectors.shape, padding_idx=0, _weight=word_vectors)
        self.words.weight.requires_grad_(settings.word_vectors != "frozen")
        self.dropout = nn.Dropout(settings.dropout)
        self.gru = nn.GRU(word_vectors.shape[1], units, batch_first=True, bidirectional=True)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Encoding:
        """Encode tokens (B, T), rows by falling length; the lengths (B,) are on the CPU."""
        if self.training and self.word_dropout:
            is_dropped = torch.rand(tokens.shape, device=tokens.device) < self.word_dropout
            tokens = tokens.masked_fill(is_dropped & (tokens > UNKNOWN), UNKNOWN)
        vectors = self.dropout(self.words(tokens))  # (B, T, D)
        if vectors.is_cuda:
            memory, summary = self._read_packed(vectors, lengths)
        else:
            memory, summary = self._read_twice(vectors, lengths)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        is_word = positions < lengths.to(tokens.device, non_blocking=True)[:, None]
        return Encoding(self.dropout(memory), is_word, self.dropout(summary))

    def _read_packed(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Run both directions at once, as cuDNN does."""
        packed, last = self.gru(pack_padded_sequence(vectors, lengths, batch_first=True))
        memory, _ = pad_packed_sequence(packed, batch_first=True)  # (B, T, M)
        return memory, torch.cat((last[0], last[1]), dim=-1)

    def _read_twice(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Run one direction after the other on padded rows: on a CPU, packing costs more.

        Each row is turned round by its own length, so that padding stays behind the words,
        where neither direction sees it in time.
        """
        B, T, _ = vectors.shape
        positions = torch.arange(T)
        turned = (lengths[:, None] - 1 - positions).clamp(min=0)  # (B, T)
        forward = self._read_once(vectors, "")  # (B, T, H)
        backward = self._read_once(_rows_at(vectors, turned), "_reverse")
        memory = torch.cat((forward, _rows_at(backward, turned)), dim=-1)  # (B, T, M)
        is_word = (positions < lengths[:, None])[..., None]
        every = torch.arange(B)
        summary = torch.cat((forward[every, lengths - 1], backward[every, lengths - 1]), dim=-1)
        return memory * is_word, summary

    def _read_once(self, vectors: Tensor, direction: str) -> Tensor:
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        weights = [getattr(self.gru, name + direction) for name in names]
        first = vectors.new_zeros(1, len(vectors), self.gru.hidden_size)
        output, _ = torch.gru(vectors, first, weights, True, 1, 0.0, False, False, True)
        return output


def _rows_at(vectors: Tensor, positions: Tensor) -> Tensor:
    """Take each document's vectors at its positions (B, T)."""
    return vectors.gather(1, positions[..., None].expand(-1, -1, vectors.shape[-1]))
