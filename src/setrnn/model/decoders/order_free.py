"""An order-free decoder: p(next label or STOP) is a function of the document and the SET so far."""

# B documents, Q sets of a document, N sets in all, K beams or orders, S labels of the longest,
# T words, M memory size, H units, D dimensions of a label vector, V = labels + STOP; orders are
# padded with -1

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from setrnn.config import ModelSettings
from setrnn.model.decoders.rnn import log_softmax, score_outputs, sum_steps
from setrnn.model.devices import without_values
from setrnn.model.dropout import Dropout
from setrnn.model.interfaces import Encoding, State
from setrnn.model.layouts import Subsets


class Layer(nn.Module):
    """Attention over the words of the document, and an update of the state."""

    def __init__(self, memory_size: int, units: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(units)
        self.query = nn.Linear(units, memory_size, bias=False)
        self.inner = nn.Linear(units + memory_size, units)
        self.outer = nn.Linear(units, units)
        self.dropout = Dropout(dropout)

    def forward(
        self, state: Tensor, encoding: Encoding, blocks: Sequence[tuple[int, int]]
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return the new state (N, H), the context (N, M), and the attention of each block."""
        normed = self.norm(state)
        contexts, weights = [], []
        for queries, part in _by_document(self.query(normed), encoding, blocks):
            weights.append(_attention(part, queries))  # (B, Q, T)
            contexts.append((weights[-1] @ part.memory).flatten(0, 1))
        context = torch.cat(contexts) if len(blocks) > 1 else contexts[0]
        inner = nn.functional.gelu(self.inner(torch.cat((normed, context), dim=1)))
        return state + self.dropout(self.outer(self.dropout(inner))), context, weights


class OrderFreeDecoder(nn.Module):
    """Emits labels one by one, and ignores the order of those emitted.

    The orders of a set of n labels pass through its 2^n subsets: p(set) is a sum over these
    instead of n! orders, and all of them are evaluated at once.
    """

    emits: ClassVar[str] = "sets"

    def __init__(self, memory_size: int, label_vectors: Tensor, settings: ModelSettings) -> None:
        super().__init__()
        self.n_labels, dimensions = label_vectors.shape
        units = settings.decoder_units
        # The last row is STOP. Padded, not concatenated: see RNNDecoder.
        with_stop = nn.functional.pad(label_vectors, (0, 0, 0, 1))
        self.labels = nn.Embedding(self.n_labels + 1, dimensions, _weight=with_stop)
        self.document = nn.Linear(memory_size, units)
        self.pool = nn.Linear(dimensions, units, bias=False)
        self.sizes = nn.Embedding(settings.max_labels + 1, units)
        nn.init.normal_(self.sizes.weight, std=0.1)
        # phi is the last layer.
        self.layers = nn.ModuleList(
            Layer(memory_size, units, settings.dropout)
            for _ in range(max(settings.decoder_layers - 1, 1))
        )
        self.phi = nn.Linear(memory_size + 2 * units, units)
        self.output = nn.Linear(units, self.n_labels + 1)
        self.to_label_space = nn.Linear(units, dimensions) if settings.label_output else None
        self.dropout = Dropout(settings.dropout)

    @classmethod
    def from_weights(
        cls, weights: Mapping[str, Tensor], memory_size: int, settings: ModelSettings
    ) -> OrderFreeDecoder:
        """Build the decoder in the shape of saved weights; their values are assigned later."""
        with without_values():
            labels = torch.empty_like(weights["labels.weight"][:-1], device="meta")
            return cls(memory_size, labels, settings)

    def start(self, encoding: Encoding) -> State:
        """Return the state of the empty set, with one beam per document: (B, 1, ...).

        It holds the sum of document and labels, the number of labels, and their marks.
        """
        together = self.document(encoding.summary)[:, None]  # (B, 1, H)
        size = torch.zeros(together.shape[:2], dtype=torch.long, device=together.device)
        is_used = together.new_zeros(*size.shape, self.n_labels + 1, dtype=torch.bool)
        return together, size, is_used

    def step(self, encoding: Encoding, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Return log-probabilities (B, K, V) after the previous labels (B, K), and the state."""
        together, size, is_used = state
        # The input n_labels means no label yet and adds nothing.
        values = self.pool(self.dropout(self.labels(previous)))
        together = together + values * (previous < self.n_labels)[..., None]
        size = size + (previous < self.n_labels)
        is_used = is_used.scatter(-1, previous[..., None], True)
        is_used[..., self.n_labels] = False
        blocks = [(previous.shape[0], previous.shape[1])]
        logits, _ = self._logits(together.flatten(0, 1), size.flatten(), encoding, blocks)
        return log_softmax(logits.view(is_used.shape), is_used), (together, size, is_used)

    def after(self, encoding: Encoding, subsets: Subsets) -> Tensor:
        """Return log-probabilities after each of many sets, in one call: (N, V)."""
        ordered = encoding.rows(subsets.documents)
        of_documents = self.document(ordered.summary)  # (B, H)
        of_labels = self._sum_values(encoding, subsets)
        together = of_documents.index_select(0, subsets.rows) + of_labels  # (N, H)
        size = subsets.is_member.sum(1)
        logits, _ = self._logits(together, size, ordered, subsets.blocks)
        return log_softmax(logits, subsets.used_labels(self.n_labels))

    def score(self, encoding: Encoding, orders: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log p(sequence), including STOP, of orders (B, K, S): (B, K)."""
        return sum_steps(self._before_steps(encoding, orders), orders, lengths)

    def follow(
        self, encoding: Encoding, sequences: Tensor, lengths: Tensor | None = None
    ) -> Tensor:
        """Return log-probabilities before each step of sequences (B, S): (B, S + 1, V)."""
        return self._before_steps(encoding, sequences[:, None])[:, 0]

    def attend(self, encoding: Encoding, orders: Tensor) -> Tensor:
        """Return the attention on each word at each step, including STOP: (B, K, S + 1, T).

        It is that of the last layer, which is nearest to the output.
        """
        B, K, S = orders.shape
        _, weights = self._logits_at_steps(encoding, orders)
        return weights[0].view(B, K, S + 1, -1)

    def _before_steps(self, encoding: Encoding, orders: Tensor) -> Tensor:
        """Return log-probabilities before each step of orders (B, K, S): (B, K, S + 1, V)."""
        logits, _ = self._logits_at_steps(encoding, orders)
        is_used = _used_before(orders, self.n_labels)
        return log_softmax(logits.view(is_used.shape), is_used)

    def _logits_at_steps(self, encoding: Encoding, orders: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the logits at each step of orders (B, K, S), and the attention."""
        B, K, S = orders.shape
        inputs = orders.where(orders >= 0, self.n_labels)
        added = nn.functional.embedding(inputs, self._values()).cumsum(2)  # (B, K, S, H)
        together = nn.functional.pad(added, (0, 0, 1, 0))  # (B, K, S + 1, H)
        together = together + self.document(encoding.summary)[:, None, None]
        size = nn.functional.pad((orders >= 0).cumsum(2), (1, 0))
        blocks = [(B, K * (S + 1))]
        return self._logits(together.flatten(0, 2), size.flatten(), encoding, blocks)

    def _values(self, vectors: Tensor | None = None) -> Tensor:
        """Return what each label adds to the state, (V, H); the last row, no label yet, is 0."""
        vectors = self.labels.weight[:-1] if vectors is None else vectors
        values: Tensor = self.pool(self.dropout(vectors))
        return nn.functional.pad(values, (0, 0, 0, 1))

    def _sum_values(self, encoding: Encoding, subsets: Subsets) -> Tensor:
        """Return what the labels of each subset add to the state together: (N, H)."""
        if encoding.shortlist is None and subsets.labels.is_cuda:  # which waits for nothing
            return subsets.sum_labels(self._values())
        own, labels = torch.unique(subsets.labels, return_inverse=True)
        return replace(subsets, labels=labels).sum_labels(self._values(self.labels(own)))

    def _logits(
        self,
        together: Tensor,
        size: Tensor,
        encoding: Encoding,
        blocks: Sequence[tuple[int, int]],
    ) -> tuple[Tensor, list[Tensor]]:
        """Score the outputs after sets, given their sums (N, H) and sizes (N,): (N, V).

        A block holds documents with equally many sets each. Returns also the attention of the last
        layer, per block.
        """
        size = size.clamp(max=self.sizes.num_embeddings - 1)
        state = together + self.sizes(size)
        context, weights = state, [state]
        for layer in self.layers:
            state, context, weights = layer(state, encoding, blocks)
        features = self.phi(torch.cat((context, self.dropout(state), together), dim=1))
        features = self.dropout(features.tanh())
        if encoding.shortlist is not None:
            return self._score_shortlists(features, encoding, blocks), weights
        logits = score_outputs(features, self.output, self.to_label_space, self.labels.weight)
        return _add_evidence(logits.float(), encoding, blocks), weights

    def _score_shortlists(
        self, features: Tensor, encoding: Encoding, blocks: Sequence[tuple[int, int]]
    ) -> Tensor:
        """Score the outputs from the features (N, H) of sets: (N, V).

        Labels that are not on the shortlist of their document have its evidence alone.
        """
        assert encoding.shortlist is not None
        assert encoding.evidence is not None
        features, weight, bias = self._list_outputs(features, encoding.shortlist)
        of_documents = (encoding.shortlist, weight, bias, encoding.evidence)
        n_documents = [each for each, _ in blocks]
        parts = zip(*(torch.split(each, n_documents) for each in of_documents), strict=True)
        found = []
        for (own, _), part in zip(_by_document(features, encoding, blocks), parts, strict=True):
            listed, weight, bias, evidence = part
            scores = torch.baddbmm(bias[:, None], own, weight.mT).float()  # (B, Q, C + 1)
            logits = evidence[:, None].expand(-1, own.shape[1], -1)  # (B, Q, V)
            logits = logits.scatter_add(2, listed[:, None].expand(scores.shape), scores)
            found.append(logits.flatten(0, 1))
        return torch.cat(found) if len(found) > 1 else found[0]

    def _list_outputs(self, features: Tensor, listed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the features (N, M) that outputs are scored by, and what scores those listed.

        These are weights (B, C + 1, M) and biases (B, C + 1). See `score_outputs`.
        """
        output, to_label_space, vectors = self.output, self.to_label_space, self.labels.weight
        if to_label_space is None:
            weight = nn.functional.embedding(listed, output.weight)
            return features, weight, output.bias[listed]
        # Two products per output are cheaper than one table of all labels.
        both = torch.cat((features, to_label_space(features)), dim=1)
        weights = [nn.functional.embedding(listed, each) for each in (output.weight, vectors)]
        return both, torch.cat(weights, dim=2), output.bias[listed]


def _by_document(
    values: Tensor, encoding: Encoding, blocks: Sequence[tuple[int, int]]
) -> list[tuple[Tensor, Encoding]]:
    """View values (N, M) as (B, Q, M) per block, with the documents of the block."""
    if len(blocks) == 1:
        return [(values.view(*blocks[0], -1), encoding)]
    parts, row, first = [], 0, 0
    for n_documents, n_sets in blocks:
        rows = values[row : row + n_documents * n_sets]
        stop = first + n_documents
        parts.append((rows.view(n_documents, n_sets, -1), encoding.slice(first, stop)))
        row, first = row + n_documents * n_sets, stop
    return parts


def _add_evidence(logits: Tensor, encoding: Encoding, blocks: Sequence[tuple[int, int]]) -> Tensor:
    """Add the evidence of the documents to the logits of their sets: (N, V)."""
    if encoding.evidence is None:
        return logits
    parts = [
        (rows + part.evidence[:, None]).flatten(0, 1)  # type: ignore[index]
        for rows, part in _by_document(logits, encoding, blocks)
    ]
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _attention(encoding: Encoding, query: Tensor) -> Tensor:
    """Return the weight of each word for queries (B, Q, M): (B, Q, T)."""
    scale = query.shape[2] ** -0.5
    scores = torch.baddbmm(encoding.closed[:, None], query, encoding.memory.mT, alpha=scale)
    return scores.softmax(-1)


def _used_before(orders: Tensor, n_labels: int) -> Tensor:
    """Mark the labels that were emitted before each step, never STOP: (B, K, S + 1, V)."""
    labels = orders.where(orders >= 0, n_labels)
    emitted = nn.functional.one_hot(labels, n_labels + 1).cumsum(2)
    is_used = nn.functional.pad(emitted, (0, 0, 1, 0)) > 0
    is_used[..., n_labels] = False
    return is_used
