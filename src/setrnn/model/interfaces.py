"""What the search and the objectives know of a network: these protocols, and nothing else."""

# B documents, T words, M memory size, K beams or orders, S steps, V = labels + STOP

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from setrnn.model.subsets import Subsets

# Tensors (B, K, ...): what a decoder remembers of each beam's labels so far.
State = tuple[Tensor, ...]


@dataclass(frozen=True)
class Encoding:
    """Documents as the decoder sees them."""

    memory: Tensor  # (B, T, M) a vector for each word
    closed: Tensor  # (B, T) to add to scores of words: 0, or -inf on padding
    summary: Tensor  # (B, M) the whole document

    def rows(self, index: Tensor) -> Encoding:
        """Return some of the documents."""
        parts = (each.index_select(0, index) for each in (self.memory, self.closed, self.summary))
        return Encoding(*parts)

    @property
    def is_word(self) -> Tensor:
        """False on padding: (B, T)."""
        return self.closed == 0


class Encoder(Protocol):
    """Reads documents."""

    memory_size: int

    def __call__(self, tokens: Tensor, lengths: Tensor) -> Encoding:
        """Encode tokens (B, T), of which each row has its length (B,), at least 1."""


class Decoder(Protocol):
    """Gives p(next label or STOP | document, labels so far).

    Label ids are 0 ... n_labels - 1. STOP is the output n_labels, and as an input the same
    number means that there is no label yet. A label that was emitted has probability 0.
    """

    n_labels: int
    training: bool

    def train(self, mode: bool = True) -> Decoder:
        """Turn dropout on or off."""

    def start(self, encoding: Encoding) -> State:
        """Return the state before the first label, one beam a document: (B, 1, ...)."""

    def step(self, encoding: Encoding, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Return log-probabilities (B, K, V) after the previous labels (B, K), and the state."""

    def score(self, encoding: Encoding, orders: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log p(sequence), STOP included, of orders (B, K, S) that -1 fills up: (B, K).

        Where the lengths (B, K) are known beforehand, on the CPU, the GPU need not be asked for
        them. A length of -1 stands for no order, and -inf comes back.
        """

    def attend(self, encoding: Encoding, orders: Tensor) -> Tensor:
        """Return the attention on each word at each step, STOP's included: (B, K, S + 1, T)."""


class OrderFree(Decoder, Protocol):
    """A decoder whose probabilities depend on the SET of labels so far, not on their order."""

    def after(self, encoding: Encoding, subsets: Subsets) -> Tensor:
        """Return log-probabilities after each of many sets, in one call: (N, V)."""
