"""Label evidence: how much the words of a document speak for each label by itself.

With many labels, only a shortlist of labels per document is scored in full. Wide evidence is what a
linear model on words and word pairs says about each label.
"""

# B documents, T words, W size of what is read of a word, C labels of a shortlist, L labels,
# d features, Z weights that are not 0, V = labels + STOP

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from setrnn.data.text.words import PAD, SPECIAL_TOKENS, UNKNOWN
from setrnn.model.interfaces import Encoding

if TYPE_CHECKING:
    from setrnn.data.batches import Batch

MAX_SCORES = 2**26  # of words for labels, at once
LABELS_PER_PLACE = 8  # with fewer labels per place of the shortlist, all labels are scored in full
MAX_PRODUCTS = 2**24  # of a feature of a document and a weight of a label, at once
DTYPES = {
    "idf": torch.float32,
    "pairs": torch.int64,
    "offsets": torch.int64,
    "labels": torch.int64,
    "weights": torch.float32,
    "intercepts": torch.float32,
}


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

    The cheap part is linear, r_l = sum_t m_t . u_l / sqrt(T) + b_l, plus what wide evidence adds.
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

    def shorten(self, encoding: Encoding, more: Tensor | None = None) -> Encoding:
        """Add the evidence of all outputs, (B, V), and the shortlist, (B, C + 1) with STOP.

        `more` (B, V) is evidence from elsewhere.
        """
        words = (_weigh_words(encoding).mT @ encoding.words)[:, 0]  # (B, W)
        proposed = self.proposal(words) + self.value.bias
        evidence = nn.functional.pad(proposed.float(), (0, 1))
        evidence = evidence if more is None else evidence + more
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


class WideEvidence(nn.Module):
    """The log-odds of labels from BR's sparse weights on tf-idf, times a learned scale.

    Every decoder adds it to the logits of the labels, at every step. The weights of BR stay as
    they were fitted. They know the training documents: these bring their log-odds along, from
    weights that were fitted on other documents.
    """

    idf: Tensor  # (d,) of the tokens, then of the pairs
    pairs: Tensor  # first id * number of tokens + second id, ascending
    offsets: Tensor  # (d + 1,) where the weights of each feature begin
    labels: Tensor  # (Z,) the label of each weight
    weights: Tensor  # (Z,)
    intercepts: Tensor  # (L,)

    def __init__(self, arrays: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name, dtype in DTYPES.items():
            array = arrays[name]
            if array.ndim != 1 or array.dtype != dtype:
                raise ValueError(f"wide.{name} is {array.dtype} {tuple(array.shape)}")
            self.register_buffer(name, array)
        self.scale = nn.Parameter(torch.ones(1))
        self._check()

    def _check(self) -> None:
        """Raise ValueError if the arrays do not fit."""
        n_weights, offsets, labels = len(self.weights), self.offsets, self.labels
        fits = (
            len(offsets) == len(self.idf) + 1
            and len(labels) == n_weights
            and len(self.pairs) <= len(self.idf)
            and bool((self.pairs.diff() > 0).all())
            and bool((offsets.diff() >= 0).all())
            and (int(offsets[0]), int(offsets[-1])) == (0, n_weights)
            and bool(((labels >= 0) & (labels < len(self.intercepts))).all())
        )
        if not fits:
            raise ValueError("the arrays of wide do not fit")

    @property
    def n_tokens(self) -> int:
        """The number of tokens; the other features are pairs."""
        return len(self.idf) - len(self.pairs)

    def forward(self, batch: Batch) -> Tensor:
        """Return the evidence for each output, 0 for STOP: (B, V)."""
        known = batch.log_odds
        log_odds = self.log_odds(batch.tokens, batch.lengths) if known is None else known
        return nn.functional.pad(self.scale * log_odds, (0, 1))

    @torch.no_grad()
    def log_odds(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the log-odds of each label by BR, from padded token ids (B, T): (B, L)."""
        n_labels, n_documents = len(self.intercepts), len(tokens)
        at_once = max(MAX_PRODUCTS // (2 * tokens.shape[1] * n_labels), 1)  # words and pairs
        if n_documents > at_once:
            cuts = zip(torch.split(tokens, at_once), torch.split(lengths, at_once), strict=True)
            return torch.cat([self.log_odds(*part) for part in cuts])
        document, feature, value = self._tfidf(tokens, lengths)
        first = self.offsets[feature]
        n_weights = self.offsets[feature + 1] - first
        total = self.intercepts.repeat(n_documents)
        entry = torch.repeat_interleave(n_weights)  # of the tf-idf vectors, for each product
        before = n_weights.cumsum(0) - n_weights
        place = first[entry] + torch.arange(len(entry), device=entry.device) - before[entry]
        to = document[entry] * n_labels + self.labels[place]
        total.index_add_(0, to, value[entry] * self.weights[place])
        return total.view(-1, n_labels)

    def _tfidf(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the document, the feature and the value of each entry of the tf-idf vectors."""
        d = len(self.idf)
        B, T = tokens.shape
        is_inside = torch.arange(T, device=tokens.device) < lengths[:, None]
        document = torch.arange(B, device=tokens.device)[:, None].expand(B, T)
        is_word = is_inside.clone()
        for name in (PAD, UNKNOWN):
            is_word &= tokens != SPECIAL_TOKENS.index(name)
        keys = [(document * d + tokens)[is_word]]
        if len(self.pairs):
            in_pair = is_inside & (tokens >= len(SPECIAL_TOKENS))
            pair = tokens[:, :-1] * self.n_tokens + tokens[:, 1:]
            place = torch.searchsorted(self.pairs, pair).clamp(max=len(self.pairs) - 1)
            is_pair = in_pair[:, :-1] & in_pair[:, 1:] & (self.pairs[place] == pair)
            keys.append((document[:, :-1] * d + self.n_tokens + place)[is_pair])
        found, counts = torch.unique(torch.cat(keys), return_counts=True)
        document, feature = found.div(d, rounding_mode="floor"), found % d
        value = (1 + counts.log()) * self.idf[feature]
        norm = value.new_zeros(B).index_add_(0, document, value.square()).sqrt()
        return document, feature, value / norm[document]
