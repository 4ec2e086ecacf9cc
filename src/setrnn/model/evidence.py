"""Label evidence: how much the words of a document speak for each label by itself.

With many labels, only a shortlist of labels per document is scored in full.
"""

# B documents, T words, W size of what is read of a word, C labels of a shortlist, L labels,
# V = labels + STOP

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from setrnn.model.interfaces import Encoding

MAX_SCORES = 2**26  # of words for labels, at once
LABELS_PER_PLACE = 8  # with fewer labels per place of the shortlist, all labels are scored in full


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


class ShortlistEvidence(LabelEvidence):
    """Evidence in two steps: a cheap part for all labels, attention for the best of them.

    The cheap part is linear, r_l = sum_t m_t . u_l / sqrt(T) + b_l.
    The C labels of the largest r_l are the shortlist of the document: attention is added to their
    evidence, and what the decoder makes of the labels so far to their logits. All other labels
    keep r_l as their logit at every step. The outputs are normalised over all labels and STOP: the
    probabilities of all sets still sum to 1.
    """

    def __init__(self, word_size: int, n_labels: int, n_listed: int) -> None:
        super().__init__(word_size, n_labels)
        self.proposal = nn.Linear(word_size, n_labels, bias=False)  # u
        nn.init.zeros_(self.proposal.weight)
        self.n_listed = min(n_listed, n_labels)  # C

    def shorten(self, encoding: Encoding) -> Encoding:
        """Add the evidence of all outputs, (B, V), and the shortlist, (B, C + 1) with STOP."""
        words = (_weigh_words(encoding).mT @ encoding.words)[:, 0]  # (B, W)
        proposed = self.proposal(words) + self.value.bias
        evidence = nn.functional.pad(proposed.float(), (0, 1))
        listed = evidence.detach()[:, :-1].topk(self.n_listed, dim=1).indices  # (B, C)
        attended = self._attend(encoding, listed).sum(2)  # (B, C)
        evidence = evidence.scatter_add(1, listed, attended.float())
        shortlist = nn.functional.pad(listed, (0, 1), value=self.value.out_features)
        return replace(encoding, evidence=evidence, shortlist=shortlist)

    def by_word(self, encoding: Encoding) -> Tensor:
        """Return how much each word adds to the evidence for each label: (B, T, L)."""
        assert encoding.shortlist is not None
        words = encoding.words * _weigh_words(encoding)
        listed = encoding.shortlist[:, None, :-1].expand(-1, words.shape[1], -1)  # (B, T, C)
        of_attention = self._attend(encoding, listed[:, 0]).mT
        return linear(words, self.proposal.weight).scatter_add(2, listed, of_attention)

    def _attend(self, encoding: Encoding, listed: Tensor) -> Tensor:
        """Return how much each word adds to the evidence of listed labels (B, C): (B, C, T)."""
        words = encoding.words.mT  # (B, W, T)
        queries, values = (
            nn.functional.embedding(listed, each.weight) @ words
            for each in (self.query, self.value)
        )
        found: Tensor = (queries + encoding.closed[:, None]).softmax(2) * values
        return found


def _weigh_words(encoding: Encoding) -> Tensor:
    """Return 1 / sqrt(T) for the T words of each document, 0 for padding: (B, T, 1)."""
    is_word = encoding.is_word.to(encoding.words.dtype)
    return (is_word / is_word.sum(1, keepdim=True).sqrt())[..., None]


def make_evidence(word_size: int, n_labels: int, n_listed: int) -> LabelEvidence:
    """Build label evidence, with a shortlist of labels per document unless `n_listed` is 0."""
    if n_listed:
        return ShortlistEvidence(word_size, n_labels, n_listed)
    return LabelEvidence(word_size, n_labels)
