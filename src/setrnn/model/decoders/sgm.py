"""SGM's decoder (Yang et al., 2018): its input is all labels, weighted by their probability."""

# B documents, K beams or orders, S steps, D dimensions of a label vector, V = labels + STOP;
# orders are padded with -1

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from setrnn.config import ModelSettings
from setrnn.model.decoders.rnn import RNNDecoder, sum_steps
from setrnn.model.interfaces import Encoding, State


class SGMDecoder(RNNDecoder):
    """The RNN decoder whose input is the global embedding, not the previous label's vector.

    With e the previous label's vector and e' the mean of all outputs' vectors, weighted by the
    distribution the label was chosen from, the input is (1 - g) e + g e' with the gate
    g = sigmoid(W1 e + W2 e').
    The input depends on the probabilities of the step before: orders are scored step by step.
    """

    computes_rows: ClassVar[bool] = False
    reads_outputs: ClassVar[bool] = True

    def __init__(self, memory_size: int, label_vectors: Tensor, settings: ModelSettings) -> None:
        super().__init__(memory_size, label_vectors, settings)
        dimensions = label_vectors.shape[1]
        self.gate = nn.Linear(2 * dimensions, dimensions, bias=False)  # W1 and W2

    def start(self, encoding: Encoding) -> State:
        """Return the state before the first label, with one beam per document: (B, 1, ...)."""
        *hidden, is_used = super().start(encoding)
        # Before the first choice, all of the probability is on "no label yet".
        probs = torch.zeros_like(is_used, dtype=hidden[0].dtype)
        probs[..., self.n_labels] = 1.0
        return (*hidden, is_used, probs)

    def step(self, encoding: Encoding, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Return log-probabilities (B, K, V) after the previous labels (B, K), and the state."""
        *own, probs = state
        vectors = self._global_embedding(previous, probs)
        log_probs, after = self._step(encoding, tuple(own), previous, vectors)
        return log_probs, (*after, log_probs.exp())

    def score(self, encoding: Encoding, orders: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log p(sequence), including STOP, of orders (B, K, S): (B, K)."""
        return sum_steps(self._step_through(encoding, orders)[0], orders, lengths)

    def follow(
        self, encoding: Encoding, sequences: Tensor, lengths: Tensor | None = None
    ) -> Tensor:
        """Return log-probabilities before each step of sequences (B, S): (B, S + 1, V)."""
        return self._step_through(encoding, sequences[:, None])[0][:, 0]

    def attend(self, encoding: Encoding, orders: Tensor) -> Tensor:
        """Return the attention on each word at each step, including STOP: (B, K, S + 1, T)."""
        B, K, S = orders.shape
        _, hidden = self._step_through(encoding, orders)
        query = self.query(hidden.flatten(1, 2))
        return self._attention(encoding, query).view(B, K, S + 1, -1)

    def _step_through(self, encoding: Encoding, orders: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities (B, K, S + 1, V) and hidden states of every step."""
        B, K, S = orders.shape
        state = tuple(each.expand(B, K, *each.shape[2:]) for each in self.start(encoding))
        previous = orders.new_full((B, K), self.n_labels)
        log_probs, hidden = [], []
        for step in range(S + 1):
            found, state = self.step(encoding, state, previous)
            log_probs.append(found)
            hidden.append(state[self.gru.num_layers - 1])
            if step < S:
                previous = orders[:, :, step].where(orders[:, :, step] >= 0, self.n_labels)
        return torch.stack(log_probs, dim=2), torch.stack(hidden, dim=2)

    def _global_embedding(self, previous: Tensor, probs: Tensor) -> Tensor:
        """Blend the vectors of the previous labels with the mean of all vectors: (B, K, D)."""
        chosen = self.labels(previous)
        mean = probs.to(chosen.dtype) @ self._output_vectors()
        gate: Tensor = self.gate(torch.cat((chosen, mean), dim=-1)).sigmoid()
        # Under mixed precision, products have another type than the vectors.
        blended: Tensor = chosen.lerp(mean.to(chosen.dtype), gate.to(chosen.dtype))
        return blended
