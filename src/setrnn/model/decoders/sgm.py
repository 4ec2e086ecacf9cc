"""SGM's decoder (Yang et al., 2018): its input is all labels, weighted by their probability."""

# B documents, K beams or orders, D dimensions of a label vector, V = labels + STOP

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from setrnn.config import ModelSettings
from setrnn.model.decoders.stepwise import StepwiseDecoder
from setrnn.model.interfaces import Encoding, State


class SGMDecoder(StepwiseDecoder):
    """The RNN decoder whose input is the global embedding, not the previous label's vector.

    With e the previous label's vector and e' the mean of all outputs' vectors, weighted by the
    distribution the label was chosen from, the input is (1 - g) e + g e' with the gate
    g = sigmoid(W1 e + W2 e').
    The input depends on the probabilities of the step before.
    """

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

    def _global_embedding(self, previous: Tensor, probs: Tensor) -> Tensor:
        """Blend the vectors of the previous labels with the mean of all vectors: (B, K, D)."""
        chosen = self.labels(previous)
        mean = probs.to(chosen.dtype) @ self._output_vectors()
        gate: Tensor = self.gate(torch.cat((chosen, mean), dim=-1)).sigmoid()
        # Under mixed precision, products have another type than the vectors.
        blended: Tensor = chosen.lerp(mean.to(chosen.dtype), gate.to(chosen.dtype))
        return blended
