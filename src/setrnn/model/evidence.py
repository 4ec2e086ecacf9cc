"""Label evidence: how much the words of a document speak for each label by itself."""

# B documents, T words, W size of what is read of a word, L labels, V = labels + STOP

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from setrnn.model.interfaces import Encoding

MAX_SCORES = 2**26  # of words for labels, at once


class LabelEvidence(nn.Module):
    """Attention of each label over the words: e_l = sum_t softmax_t(m_t . q_l) (m_t . w_l) + b_l.

    It is computed once per document. Every decoder adds it to the logits of the labels, at every
    step.
    """

    def __init__(self, word_size: int, n_labels: int) -> None:
        super().__init__()
        self.query = nn.Linear(word_size, n_labels, bias=False)  # q
        self.value = nn.Linear(word_size, n_labels)  # w and b
        nn.init.zeros_(self.value.bias)

    def forward(self, encoding: Encoding) -> Tensor:
        """Return the evidence for each output, 0 for STOP: (B, V)."""
        B, T = encoding.closed.shape
        at_once = max(MAX_SCORES // (T * self.value.out_features), 1)
        parts = [
            self.by_word(encoding.slice(start, start + at_once)).sum(1)
            for start in range(0, max(B, 1), at_once)
        ]
        evidence = (torch.cat(parts) if len(parts) > 1 else parts[0]) + self.value.bias
        return nn.functional.pad(evidence.float(), (0, 1))

    def by_word(self, encoding: Encoding) -> Tensor:
        """Return how much each word adds to the evidence for each label: (B, T, L)."""
        words = encoding.words  # (B, T, W)
        scores = self.query(words) + encoding.closed[..., None]
        values = linear(words, self.value.weight)
        found: Tensor = scores.softmax(1) * values
        return found
