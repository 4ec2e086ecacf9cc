"""Decoders whose recurrence reads more than the labels: their orders are scored step by step."""

# B documents, K beams or orders, S steps, M memory size, D dimensions of a label vector,
# V = labels + STOP; orders are padded with -1

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from setrnn.model.decoders.rnn import RNNDecoder, sum_steps
from setrnn.model.interfaces import Encoding


class StepwiseDecoder(RNNDecoder):
    """An RNN decoder whose steps depend on the steps before by more than their labels."""

    computes_rows: ClassVar[bool] = False
    attends_before: ClassVar[bool] = False  # whether a step attends by the state before it

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
        """Return the log-probabilities (B, K, S + 1, V) of every step, and the states it asks."""
        B, K, S = orders.shape
        state = tuple(each.expand(B, K, *each.shape[2:]) for each in self.start(encoding))
        previous = orders.new_full((B, K), self.n_labels)
        top = self.gru.num_layers - 1
        log_probs, hidden = [], []
        for step in range(S + 1):
            before = state
            found, state = self.step(encoding, before, previous)
            log_probs.append(found)
            hidden.append((before if self.attends_before else state)[top])
            if step < S:
                previous = orders[:, :, step].where(orders[:, :, step] >= 0, self.n_labels)
        return torch.stack(log_probs, dim=2), torch.stack(hidden, dim=2)


class FeedingDecoder(StepwiseDecoder):
    """The RNN decoder whose recurrence also reads the context (Bahdanau et al., 2014).

    The context c_t is attended to by h_{t-1}, and h_t follows from h_{t-1}, s_{t-1} and c_t.
    """

    reads_context: ClassVar[bool] = True
    attends_before: ClassVar[bool] = True

    def _recur(
        self, encoding: Encoding, inputs: Tensor, hidden: Sequence[Tensor]
    ) -> tuple[list[Tensor], Tensor]:
        """Return the states after inputs (B, K, D), and the context (B, K, M) that they read."""
        context = self._attention(encoding, self.query(hidden[-1])) @ encoding.memory
        return self._advance(torch.cat((inputs, context), dim=-1), hidden), context
