"""Wide evidence: what a linear model on words and word pairs says about each label."""

# B documents, T words, d features, Z weights that are not 0, L labels, V = labels + STOP

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from setrnn.data.text.words import PAD, SPECIAL_TOKENS, UNKNOWN

if TYPE_CHECKING:
    from setrnn.data.batches import Batch

MAX_PRODUCTS = 2**24  # of a feature of a document and a weight of a label, at once
DTYPES = {
    "idf": torch.float32,
    "pairs": torch.int64,
    "offsets": torch.int64,
    "labels": torch.int64,
    "weights": torch.float32,
    "intercepts": torch.float32,
}


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
