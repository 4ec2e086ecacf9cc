"""The paper's decoder: a GRU over the labels so far, attention, softmax(phi(c_t, h_t, s_{t-1}))."""

# B documents, K beams or orders, S steps, T words, M memory size, H units, D dimensions of a
# label vector, V = labels + STOP

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from setrnn.config import ModelSettings
from setrnn.model.interfaces import Encoding, State


class RNNDecoder(nn.Module):
    """Emits labels one by one.

    The attention is taken after the recurrence, so that h_t depends on the labels alone: all
    steps of all orders are one call, and the attention is one matrix product.
    """

    def __init__(self, memory_size: int, label_vectors: Tensor, settings: ModelSettings) -> None:
        super().__init__()
        self.n_labels, dimensions = label_vectors.shape
        units, layers = settings.decoder_units, settings.decoder_layers
        no_label_yet = torch.zeros(1, dimensions)
        self.labels = nn.Embedding(
            self.n_labels + 1, dimensions, _weight=torch.cat((label_vectors, no_label_yet))
        )
        self.first_hidden = nn.Linear(memory_size, layers * units)
        self.gru = nn.GRU(
            dimensions,
            units,
            layers,
            batch_first=True,
            dropout=settings.dropout if layers > 1 else 0.0,
        )
        self.query = nn.Linear(units, memory_size, bias=False)
        self.phi = nn.Linear(memory_size + units + dimensions, units)
        self.output = nn.Linear(units, self.n_labels + 1)
        self.dropout = nn.Dropout(settings.dropout)

    def start(self, encoding: Encoding) -> State:
        """Return the state before the first label, one beam a document: (B, 1, ...)."""
        hidden = self._first_hidden(encoding)  # (layers, B, H)
        is_used = hidden.new_zeros(hidden.shape[1], 1, self.n_labels + 1, dtype=torch.bool)
        return (*(layer[:, None] for layer in hidden), is_used)

    def step(self, encoding: Encoding, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Return log-probabilities (B, K, V) after the previous labels (B, K), and the state."""
        *hidden, is_used = state
        is_used = self._mark_used(is_used, previous)
        inputs = self.dropout(self.labels(previous))  # (B, K, D)
        hidden = self._advance(inputs, hidden)
        logits = self._logits(encoding, hidden[-1], inputs)
        return _log_softmax(logits, is_used), (*hidden, is_used)

    def score(self, encoding: Encoding, orders: Tensor) -> Tensor:
        """Return log p(sequence), STOP included, of orders (B, K, S) that -1 fills up: (B, K)."""
        B, K, S = orders.shape
        previous, inputs, hidden = self._run(encoding, orders)
        logits = self._logits(encoding, hidden.flatten(1, 2), inputs.flatten(1, 2))
        is_used = torch.zeros(
            B, K, S + 1, self.n_labels + 1, dtype=torch.bool, device=orders.device
        )
        is_used = self._mark_used(is_used, previous).cumsum(2, dtype=torch.int8).bool()
        log_probs = _log_softmax(logits.view(B, K, S + 1, -1), is_used)
        return _sum_steps(log_probs, orders, self.n_labels)

    def attend(self, encoding: Encoding, orders: Tensor) -> Tensor:
        """Return the attention on each word at each step, STOP's included: (B, K, S + 1, T)."""
        B, K, S = orders.shape
        _, _, hidden = self._run(encoding, orders)
        return self._attention(encoding, hidden.flatten(1, 2)).view(B, K, S + 1, -1)

    def _run(self, encoding: Encoding, orders: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Run the recurrence over all steps of all orders.

        Returns the label before each step (B, K, S + 1), its vector and the hidden state.
        """
        B, K, S = orders.shape
        before_first = orders.new_full((B, K, 1), self.n_labels)
        previous = torch.cat((before_first, orders), dim=2)
        previous = previous.where(previous >= 0, self.n_labels)
        inputs = self.dropout(self.labels(previous))  # (B, K, S + 1, D)
        first = self._first_hidden(encoding).repeat_interleave(K, dim=1)  # (layers, B K, H)
        hidden, _ = self.gru(inputs.flatten(0, 1), first)  # (B K, S + 1, H)
        return previous, inputs, hidden.view(B, K, S + 1, -1)

    def _first_hidden(self, encoding: Encoding) -> Tensor:
        hidden: Tensor = self.first_hidden(encoding.summary).tanh()
        layers = self.gru.num_layers
        return hidden.view(-1, layers, self.gru.hidden_size).transpose(0, 1).contiguous()

    def _advance(self, inputs: Tensor, hidden: Sequence[Tensor]) -> list[Tensor]:
        """Take one step of every layer: inputs (B, K, D), hidden states (B, K, H)."""
        B, K, _ = inputs.shape
        below = inputs.flatten(0, 1)
        after = []
        for layer, state in enumerate(hidden):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weights = [getattr(self.gru, f"{name}_l{layer}") for name in names]
            if layer:
                below = nn.functional.dropout(below, self.gru.dropout, self.training)
            below = torch.gru_cell(below, state.flatten(0, 1), *weights)
            after.append(below.view(B, K, -1))
        return after

    def _attention(self, encoding: Encoding, hidden: Tensor) -> Tensor:
        """Weigh the words for hidden states (B, Q, H): (B, Q, T)."""
        scores: Tensor = self.query(hidden) @ encoding.memory.mT
        return scores.masked_fill(~encoding.is_word[:, None], -torch.inf).softmax(-1)

    def _logits(self, encoding: Encoding, hidden: Tensor, inputs: Tensor) -> Tensor:
        """Compute phi(c_t, h_t, s_{t-1}) for hidden states (B, Q, H): (B, Q, V)."""
        context = self._attention(encoding, hidden) @ encoding.memory  # (B, Q, M)
        features = self.phi(self.dropout(torch.cat((context, hidden, inputs), dim=-1))).tanh()
        logits: Tensor = self.output(self.dropout(features))
        return logits.float()

    def _mark_used(self, is_used: Tensor, previous: Tensor) -> Tensor:
        """Add the previous labels (...,) to those used (..., V); STOP's place stays free."""
        is_used = is_used.scatter(-1, previous[..., None], True)
        is_used[..., self.n_labels] = False
        return is_used


def _log_softmax(logits: Tensor, is_used: Tensor) -> Tensor:
    # Masked before the softmax: the sequences without repeats have all the probability.
    return logits.masked_fill(is_used, -torch.inf).log_softmax(-1)


def _sum_steps(log_probs: Tensor, orders: Tensor, stop: int) -> Tensor:
    """Sum the steps of each order and its STOP: (B, K, S + 1, V) to (B, K)."""
    targets = torch.cat((orders, orders.new_full((*orders.shape[:2], 1), -1)), dim=2)
    is_label = targets >= 0
    chosen = log_probs.gather(-1, targets.where(is_label, stop)[..., None])[..., 0]
    n_labels = is_label.sum(2, keepdim=True)
    is_step = torch.arange(targets.shape[2], device=orders.device) <= n_labels
    return chosen.masked_fill(~is_step, 0.0).sum(2)
