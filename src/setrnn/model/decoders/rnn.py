"""The paper's decoder: a GRU over the labels so far, attention, softmax(phi(c_t, h_t, s_{t-1}))."""

# B documents, K beams or orders, S labels of the longest, R orders in all, N steps in all,
# Q steps of a document, T words, M memory size, H units, D dimensions of a label vector,
# V = labels + STOP; orders are padded with -1

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import PackedSequence

from setrnn.config import ModelSettings
from setrnn.model.devices import without_values
from setrnn.model.dropout import Dropout
from setrnn.model.interfaces import Encoding, State
from setrnn.model.layouts import Prefixes, Steps

if TYPE_CHECKING:
    from typing_extensions import Self


# Of additive attention, B x Q x T x H values: more are computed in parts, and again for gradients.
MOST_FEATURES = 2**25


class RNNDecoder(nn.Module):
    """Emits labels one by one.

    The attention comes after the recurrence, so that h_t depends on the labels alone: all steps
    of all orders are one call, without padding, and the attention is one matrix product.
    """

    emits: ClassVar[str] = "sequences"
    computes_rows: ClassVar[bool] = True
    reads_outputs: ClassVar[bool] = False  # whether it reads the vectors of the outputs
    reads_context: ClassVar[bool] = False  # whether its recurrence reads the context

    def __init__(self, memory_size: int, label_vectors: Tensor, settings: ModelSettings) -> None:
        super().__init__()
        self.n_labels, dimensions = label_vectors.shape
        units, layers = settings.decoder_units, settings.decoder_layers
        # The last row is "no label yet". Padded, not concatenated: on the meta device, where a
        # saved network is rebuilt, torch.cat imports torch's compiler, which takes seconds.
        with_none = nn.functional.pad(label_vectors, (0, 0, 0, 1))
        self.labels = nn.Embedding(self.n_labels + 1, dimensions, _weight=with_none)
        self.first_hidden = nn.Linear(memory_size, layers * units)
        self.gru = nn.GRU(
            dimensions + (memory_size if self.reads_context else 0),
            units,
            layers,
            batch_first=True,
            dropout=settings.dropout if layers > 1 else 0.0,
        )
        is_additive = settings.attention == "additive"
        self.query = nn.Linear(units, units if is_additive else memory_size, bias=False)
        self.align = AdditiveScore(memory_size, units) if is_additive else None
        self.phi = nn.Linear(memory_size + units + dimensions, units)
        self.output = nn.Linear(units, self.n_labels + 1)
        self.to_label_space = nn.Linear(units, dimensions) if settings.label_output else None
        has_stop = settings.stop_vector and (settings.label_output or self.reads_outputs)
        self.stop = nn.Parameter(torch.zeros(1, dimensions)) if has_stop else None
        self.has_repeats = settings.repeats
        self.dropout = Dropout(settings.dropout)

    @classmethod
    def from_weights(
        cls, weights: Mapping[str, Tensor], memory_size: int, settings: ModelSettings
    ) -> Self:
        """Build the decoder in the shape of saved weights; their values are assigned later."""
        with without_values():
            labels = torch.empty_like(weights["labels.weight"][:-1], device="meta")
            return cls(memory_size, labels, settings)

    def start(self, encoding: Encoding) -> State:
        """Return the state before the first label, with one beam per document: (B, 1, ...)."""
        hidden = self._first_hidden(encoding)  # (layers, B, H)
        is_used = hidden.new_zeros(hidden.shape[1], 1, self.n_labels + 1, dtype=torch.bool)
        return (*(layer[:, None] for layer in hidden), is_used)

    def step(self, encoding: Encoding, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Return log-probabilities (B, K, V) after the previous labels (B, K), and the state."""
        return self._step(encoding, state, previous, self.labels(previous))

    def _step(
        self, encoding: Encoding, state: State, previous: Tensor, vectors: Tensor
    ) -> tuple[Tensor, State]:
        """Take a step that reads vectors (B, K, D)."""
        *hidden, is_used = state
        is_used = self._mark_used(is_used, previous)
        inputs = self.dropout(vectors)
        hidden, context = self._recur(encoding, inputs, hidden)
        logits = self._phi(context, hidden[-1], inputs)
        if encoding.evidence is not None:
            logits = logits + encoding.evidence[:, None]
        return self._log_softmax(logits, is_used), (*hidden, is_used)

    def _recur(
        self, encoding: Encoding, inputs: Tensor, hidden: Sequence[Tensor]
    ) -> tuple[list[Tensor], Tensor]:
        """Return the states after inputs (B, K, D), and what they attend to (B, K, M)."""
        hidden = self._advance(inputs, hidden)
        return hidden, self._attention(encoding, self.query(hidden[-1])) @ encoding.memory

    def step_rows(
        self,
        encoding: Encoding,
        documents: Tensor,
        state: State,
        parents: Tensor,
        previous: Tensor,
    ) -> tuple[Tensor, State]:
        """Return log-probabilities (R, V) after previous labels (R,), and the state (R, ...)."""
        *hidden, is_used = state
        is_used = self._mark_used(is_used[parents], previous)
        labels, place = torch.unique(previous, return_inverse=True)
        vectors = self.dropout(self.labels(labels))
        gates = linear(vectors, *_layer_weights(self.gru, "ih", 0))[place]
        after: list[Tensor] = []
        for layer, before in enumerate(hidden):
            if layer:
                gates = linear(self.dropout(after[-1]), *_layer_weights(self.gru, "ih", layer))
            # What depends on the parent alone is computed once for all that follow it.
            of_parents = linear(before, *_layer_weights(self.gru, "hh", layer))
            after.append(_gru_cell(gates, before[parents], of_parents[parents]))
        context = self._context_of_rows(encoding, documents, after[-1])  # (R, M)
        logits = self._phi(context, after[-1], vectors[place])
        if encoding.evidence is not None:
            logits += encoding.evidence[documents]
        return self._log_softmax(logits, is_used), (*after, is_used)

    def _context_of_rows(self, encoding: Encoding, documents: Tensor, hidden: Tensor) -> Tensor:
        """Attend to the words of each row's document: (R, M)."""
        B = len(encoding.memory)
        if B == 1:
            query = self.query(hidden)[None]
            return (self._attention(encoding, query) @ encoding.memory)[0]
        order = documents.argsort(stable=True)
        counts = torch.bincount(documents, minlength=B)
        Q = int(counts.max())
        first = counts.cumsum(0) - counts
        rank = torch.empty_like(order)
        rank[order] = torch.arange(len(order)) - first[documents[order]]
        place = documents * Q + rank
        query = hidden.new_zeros(B * Q, self.query.out_features)
        query[place] = self.query(hidden)
        context = self._attention(encoding, query.view(B, Q, -1)) @ encoding.memory
        return context.flatten(0, 1)[place]

    def score(self, encoding: Encoding, orders: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log p(sequence), including STOP, of orders (B, K, S): (B, K)."""
        if self._shares_prefixes:
            prefixes, log_probs = self._after_prefixes(encoding, orders, lengths)
            return prefixes.sum_by_order(log_probs)
        steps, log_probs = self._before_steps(encoding, orders, lengths)
        chosen = log_probs.gather(1, steps.targets(self.n_labels)[:, None])[:, 0]
        return steps.sum_by_order(chosen)

    def follow(
        self, encoding: Encoding, sequences: Tensor, lengths: Tensor | None = None
    ) -> Tensor:
        """Return log-probabilities before each step of sequences (B, S), in one call: (B, Q, V)."""
        orders, lengths = sequences[:, None], None if lengths is None else lengths[:, None]
        if self._shares_prefixes:
            prefixes, log_probs = self._after_prefixes(encoding, orders, lengths)
            return prefixes.by_document(log_probs)
        steps, log_probs = self._before_steps(encoding, orders, lengths)
        return steps.by_document(log_probs)

    @property
    def _shares_prefixes(self) -> bool:
        """Whether it trains on a CPU: what several orders share is computed once.

        Orders then share the dropout of the prefixes that they share.
        """
        return self.training and self.dropout.generator is not None

    def _before_steps(
        self, encoding: Encoding, orders: Tensor, lengths: Tensor | None
    ) -> tuple[Steps, Tensor]:
        """Return the steps of orders (B, K, S), and the log-probabilities before each: (N, V)."""
        steps = Steps.of(orders, lengths)
        inputs, hidden = self._run(encoding, steps)
        query = steps.by_document(self.query(hidden))  # (B, Q, M)
        context = steps.by_step(self._attention(encoding, query) @ encoding.memory)  # (N, M)
        logits = self._phi(context, hidden, inputs)  # (N, V)
        if encoding.evidence is not None:
            logits = logits + encoding.evidence[steps.document[steps.row]]
        return steps, self._log_softmax(logits, steps.used_labels(self.n_labels))

    def _after_prefixes(
        self, encoding: Encoding, orders: Tensor, lengths: Tensor | None
    ) -> tuple[Prefixes, Tensor]:
        """Return the prefixes of orders (B, K, S), and the log-probabilities after each: (N, V)."""
        if lengths is None:
            lengths = (orders >= 0).sum(2)
        prefixes = Prefixes.of(orders, lengths, self.n_labels)
        inputs = self.dropout(self.labels(prefixes.label))  # (N, D)
        hidden = self._run_prefixes(encoding, prefixes, inputs)  # (N, H)
        context = self._context_of_rows(encoding, prefixes.document, hidden)
        logits = self._phi(context, hidden, inputs)
        if encoding.evidence is not None:
            logits = logits + encoding.evidence.index_select(0, prefixes.document)
        return prefixes, self._log_softmax(logits, prefixes.is_used)

    def _run_prefixes(self, encoding: Encoding, prefixes: Prefixes, inputs: Tensor) -> Tensor:
        """Return the state of the last layer after each prefix, from its inputs (N, D): (N, H)."""
        gates = linear(inputs, *_layer_weights(self.gru, "ih", 0))  # (N, 3 H)
        states = gates
        for layer, start in enumerate(self._first_hidden(encoding)):
            weights = _layer_weights(self.gru, "hh", layer)
            if layer:
                gates = linear(self.dropout(states), *_layer_weights(self.gru, "ih", layer))
            first, *others = prefixes.by_length(gates)
            levels = [_gru_cell(first, start, linear(start, *weights))]
            for of_input, (rows, place) in zip(others, prefixes.parents, strict=True):
                before = levels[-1].index_select(0, rows)
                of_state = linear(before, *weights).index_select(0, place)
                levels.append(_gru_cell(of_input, before.index_select(0, place), of_state))
            states = torch.cat(levels)
        return states

    def attend(self, encoding: Encoding, orders: Tensor) -> Tensor:
        """Return the attention on each word at each step, including STOP: (B, K, S + 1, T)."""
        B, K, S = orders.shape
        steps = Steps.of(orders, torch.full((B, K), S))
        _, hidden = self._run(encoding, steps)
        weights = self._attention(encoding, steps.by_document(self.query(hidden)))
        return weights.view(B, K, S + 1, -1)  # the orders of a document follow one another

    def _run(self, encoding: Encoding, steps: Steps) -> tuple[Tensor, Tensor]:
        """Run the recurrence over all steps; return the inputs (N, D) and the states (N, H)."""
        inputs = self.dropout(self.labels(steps.previous(self.n_labels)))
        first = self._first_hidden(encoding)[:, steps.document]  # (layers, R, H)
        hidden, _ = self.gru(PackedSequence(inputs, steps.n_rows), first)
        return inputs, hidden.data

    def _first_hidden(self, encoding: Encoding) -> Tensor:
        hidden: Tensor = self.first_hidden(encoding.summary).tanh()
        layers = self.gru.num_layers
        return hidden.view(-1, layers, self.gru.hidden_size).transpose(0, 1).contiguous()

    def _advance(self, inputs: Tensor, hidden: Sequence[Tensor]) -> list[Tensor]:
        """Advance every layer by one step: inputs (..., D), hidden states (..., H)."""
        below = inputs.flatten(0, -2)
        after = []
        for layer, state in enumerate(hidden):
            below = self.dropout(below) if layer else below
            below = torch.gru_cell(below, state.flatten(0, -2), *_cell_weights(self.gru, layer))
            after.append(below.view(state.shape))
        return after

    def _attention(self, encoding: Encoding, query: Tensor) -> Tensor:
        """Return the weight of each word for queries (B, Q, M), or (B, Q, H): (B, Q, T)."""
        if self.align is not None:
            scores: Tensor = self.align(encoding.memory, query) + encoding.closed[:, None]
        else:
            scores = torch.baddbmm(encoding.closed[:, None], query, encoding.memory.mT)
        return scores.softmax(-1)

    def _phi(self, context: Tensor, hidden: Tensor, inputs: Tensor) -> Tensor:
        """Compute phi(c_t, h_t, s_{t-1}): (..., V)."""
        # The memory and the inputs had dropout before.
        together = torch.cat((context, self.dropout(hidden), inputs), dim=-1)
        features = self.dropout(self.phi(together).tanh())
        vectors = self._output_vectors()
        return score_outputs(features, self.output, self.to_label_space, vectors).float()

    def _output_vectors(self) -> Tensor:
        """Return the vector of each output, (V, D): the last is that of STOP."""
        if self.stop is None:
            return self.labels.weight
        return torch.cat((self.labels.weight[:-1], self.stop))

    def _log_softmax(self, logits: Tensor, is_used: Tensor) -> Tensor:
        """Return log-probabilities over the outputs; -inf for labels that were emitted."""
        if self.has_repeats:  # sequences with repeats have a probability, and are left out
            return logits.log_softmax(-1).masked_fill(is_used, -torch.inf)
        return log_softmax(logits, is_used)

    def _mark_used(self, is_used: Tensor, previous: Tensor) -> Tensor:
        """Mark the previous labels (...,) among those used (..., V), never STOP."""
        is_used = is_used.scatter(-1, previous[..., None], True)
        is_used[..., self.n_labels] = False
        return is_used


class AdditiveScore(nn.Module):
    """Additive attention, v . tanh(U m + W h) (Bahdanau et al., 2014): the paper cites it."""

    def __init__(self, memory_size: int, units: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory_size, units)
        self.score = nn.Linear(units, 1, bias=False)

    def forward(self, memory: Tensor, query: Tensor) -> Tensor:
        """Score words (B, T, M) for queries W h (B, Q, H): (B, Q, T)."""
        keys = self.key(memory)[:, None]  # (B, 1, T, H)
        n_queries = max(MOST_FEATURES // max(keys.numel(), 1), 1)
        if query.shape[1] <= n_queries:
            return self._score(keys, query)
        parts = torch.split(query, n_queries, dim=1)
        if not torch.is_grad_enabled():
            return torch.cat([self._score(keys, part) for part in parts], dim=1)
        from torch.utils.checkpoint import checkpoint

        found = [
            checkpoint(self._score, keys, part, use_reentrant=False, preserve_rng_state=False)
            for part in parts
        ]
        return torch.cat(found, dim=1)

    def _score(self, keys: Tensor, query: Tensor) -> Tensor:
        scores: Tensor = self.score((query[:, :, None] + keys).tanh())
        return scores[..., 0]


def score_outputs(
    features: Tensor, output: nn.Linear, to_label_space: nn.Linear | None, vectors: Tensor
) -> Tensor:
    """Score the outputs (..., V) by their own weights and by the label vectors (V, D).

    The vector of a label as an input helps to score it as an output.
    """
    if to_label_space is None:
        return output(features)  # type: ignore[no-any-return]
    if features.numel() < vectors.numel():  # few rows: two small products are cheaper
        scores: Tensor = output(features) + to_label_space(features) @ vectors.mT
        return scores
    # One weight (V, H) and bias (V,) that score the outputs in both ways.
    weight = output.weight + vectors @ to_label_space.weight
    return linear(features, weight, output.bias + vectors @ to_label_space.bias)


def _layer_weights(gru: nn.GRU, part: str, layer: int) -> tuple[Tensor, Tensor]:
    """Return the weight and the bias of a layer for its inputs (ih) or its state (hh)."""
    return getattr(gru, f"weight_{part}_l{layer}"), getattr(gru, f"bias_{part}_l{layer}")


def _cell_weights(gru: nn.GRU, layer: int) -> list[Tensor]:
    """Return the weights of a layer in the order in which torch expects them."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [getattr(gru, f"{name}_l{layer}") for name in names]


def _gru_cell(of_input: Tensor, hidden: Tensor, of_hidden: Tensor) -> Tensor:
    """Return the state (R, H) from both products (R, 3 H), with gradients: `torch.gru_cell`."""
    H = hidden.shape[1]
    reset, update = (of_input[:, : 2 * H] + of_hidden[:, : 2 * H]).sigmoid().chunk(2, dim=1)
    new = torch.addcmul(of_input[:, 2 * H :], reset, of_hidden[:, 2 * H :]).tanh()
    return new.lerp(hidden, update)


def sum_steps(log_probs: Tensor, orders: Tensor, lengths: Tensor | None) -> Tensor:
    """Sum what orders (B, K, S) and STOP have of the log-probabilities (B, K, S + 1, V): (B, K)."""
    stop = log_probs.shape[3] - 1
    targets = nn.functional.pad(orders, (0, 1), value=-1)
    chosen = log_probs.gather(3, targets.where(targets >= 0, stop)[..., None])[..., 0]
    n_labels = (orders >= 0).sum(2, keepdim=True)
    is_step = torch.arange(targets.shape[2], device=orders.device) <= n_labels
    total = chosen.where(is_step, 0.0).sum(2)
    if lengths is None:
        return total
    return total.masked_fill(lengths.to(orders.device) < 0, -torch.inf)


def log_softmax(logits: Tensor, is_used: Tensor) -> Tensor:
    """Return log-probabilities over the labels that are left, and STOP."""
    # Masked before the softmax: sequences without repeats have probability 1 in sum.
    return logits.masked_fill(is_used, -torch.inf).log_softmax(-1)
