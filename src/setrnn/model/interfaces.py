"""The protocols of encoders and decoders: all that search and objectives know about a network."""

# B documents, T words, M memory size, W size of what label evidence reads of a word, K beams or
# orders, S steps, L labels, D dimensions of a label vector, N subsets, V = labels + STOP; rows of
# labels are padded with -1

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from torch import Tensor

from setrnn.config import Config, ModelSettings
from setrnn.model.layouts import Subsets
from setrnn.progress import OnProgress

if TYPE_CHECKING:
    from typing_extensions import Self

    from setrnn.data.prepared import Prepared

# Tensors (B, K, ...): what a decoder remembers of the labels of each beam.
State = tuple[Tensor, ...]


@dataclass(frozen=True)
class Encoding:
    """Documents as a decoder sees them."""

    memory: Tensor  # (B, T, M) one vector per word
    closed: Tensor  # (B, T) added to scores of words: 0, or -inf on padding
    summary: Tensor  # (B, M) one vector per document
    details: Tensor | None = None  # (B, T, W) what label evidence reads instead of the memory
    evidence: Tensor | None = None  # (B, V) added to the logits of the outputs at every step
    # (B, C + 1) the labels whose logits depend on those so far, then STOP; None for all labels
    shortlist: Tensor | None = None
    # The prefixes of their label sequences that a CPU has computed: see `PrefixTree.of`.
    memo: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def words(self) -> Tensor:
        """What label evidence reads of each word: (B, T, W)."""
        return self.memory if self.details is None else self.details

    def rows(self, index: Tensor) -> Encoding:
        """Return a copy of some of the documents, without details: the evidence has read them."""
        return replace(self, details=None)._map(lambda part: part.index_select(0, index))

    def slice(self, start: int, stop: int) -> Encoding:
        """Return consecutive documents."""
        return self._map(lambda part: part[start:stop])

    @property
    def n_bytes(self) -> int:
        """The memory of the tensors, and of what was computed with them."""
        tensors = [each for each in vars(self).values() if isinstance(each, Tensor)]
        return sum(each.nbytes for each in (*tensors, *self.memo.values()))

    def _map(self, change: Callable[[Tensor], Tensor]) -> Encoding:
        of_words = (self.memory, self.closed, self.summary, self.details)
        parts = (*of_words, self.evidence, self.shortlist)
        return Encoding(*(part if part is None else change(part) for part in parts))  # type: ignore[arg-type]

    @property
    def is_word(self) -> Tensor:
        """False on padding: (B, T)."""
        return self.closed == 0


class Encoder(Protocol):
    """Reads documents: an `nn.Module` in `ENCODERS`, chosen by `encoder.name`.

    `setrnn.checks.check_encoder` runs one; CONTRIBUTING.md adds one.

    Example:
        >>> from setrnn.model.encoders import find_encoder
        >>> find_encoder("gru").__name__
        'GRUEncoder'
    """

    memory_size: int  # M
    word_size: int  # W, the memory size unless the encoder gives details

    @property
    def n_tokens(self) -> int:
        """The number of token ids that the encoder knows."""

    @classmethod
    def check(cls, config: Config) -> None:
        """Refuse settings that the encoder cannot start from, before any data is read."""

    @classmethod
    def from_data(
        cls, prepared: Prepared, config: Config, on_progress: OnProgress
    ) -> tuple[Self, Tensor]:
        """Build the encoder before training, and vectors of the labels for the decoder, (L, D).

        With `encoder.path`, the documents are subwords of that pretrained folder's tokenizer;
        without, they are words.
        """

    @classmethod
    def from_weights(cls, weights: Mapping[str, Tensor], settings: ModelSettings) -> Self:
        """Build the encoder in the shape of saved weights; their values are assigned later."""

    def __call__(self, tokens: Tensor, lengths: Tensor) -> Encoding:
        """Encode tokens (B, T) of documents with given lengths (B,), at least 1."""


class AnyDecoder(Protocol):
    """What every decoder has: an `nn.Module` in `DECODERS`, chosen by its method.

    It is built from the encoder's memory size, the vectors of the labels (L, D) and the settings.
    `emits` decides which system predicts with it (`setrnn.systems.registry`):

    - "sequences": labels one by one; a `Decoder`.
    - "sets": labels one by one, whose probabilities ignore the order; an `OrderFree` decoder.
    - "labels": each label by itself; an `Independent` decoder.

    `setrnn.checks.check_decoder` runs one; CONTRIBUTING.md adds one.

    Example:
        >>> from setrnn.model.decoders import find_decoder
        >>> find_decoder("sigmoid").emits
        'labels'
    """

    emits: ClassVar[str]
    n_labels: int
    training: bool

    def __init__(self, memory_size: int, label_vectors: Tensor, settings: ModelSettings) -> None:
        """Build the decoder before training."""

    @classmethod
    def from_weights(
        cls, weights: Mapping[str, Tensor], memory_size: int, settings: ModelSettings
    ) -> Self:
        """Build the decoder in the shape of saved weights; their values are assigned later."""

    def train(self, mode: bool = True) -> Self:
        """Turn dropout on or off."""


class Decoder(AnyDecoder, Protocol):
    """Gives p(next label or STOP | document, labels so far).

    Label ids are 0 ... L - 1. STOP is the output L; as an input, L means that there is no label
    yet. A label that was emitted has probability 0.
    """

    def start(self, encoding: Encoding) -> State:
        """Return the state before the first label, with one beam per document: (B, 1, ...)."""

    def step(self, encoding: Encoding, state: State, previous: Tensor) -> tuple[Tensor, State]:
        """Return log-probabilities (B, K, V) after the previous labels (B, K), and the state."""

    def score(self, encoding: Encoding, orders: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log p(sequence), including STOP, of orders (B, K, S): (B, K).

        Known lengths (B, K), on the CPU, save waiting for the GPU. A length of -1 means that
        there is no order; its log-probability is -inf.
        """

    def follow(
        self, encoding: Encoding, sequences: Tensor, lengths: Tensor | None = None
    ) -> Tensor:
        """Return log-probabilities before each step of sequences (B, S), in one call: (B, Q, V).

        Q is at most S + 1: the last step is that after the labels. Steps after that of a shorter
        sequence have no meaning. Known lengths (B,), on the CPU, save waiting for the GPU.
        """

    def attend(self, encoding: Encoding, orders: Tensor) -> Tensor:
        """Return the attention on each word at each step, including STOP: (B, K, S + 1, T)."""


class RowDecoder(Decoder, Protocol):
    """A decoder that can also compute single steps of any documents, for searches on a CPU."""

    computes_rows: ClassVar[bool]

    def step_rows(
        self,
        encoding: Encoding,
        documents: Tensor,
        state: State,
        parents: Tensor,
        previous: Tensor,
    ) -> tuple[Tensor, State]:
        """Return log-probabilities (R, V) after the previous labels (R,), and the state (R, ...).

        `documents` (R,) is the document of each row, and `parents` (R,) the row of the state
        (P, ...) that it follows.
        """


class OrderFree(Decoder, Protocol):
    """A decoder whose probabilities depend on the SET of labels so far, not on their order."""

    def after(self, encoding: Encoding, subsets: Subsets) -> Tensor:
        """Return log-probabilities after each of many sets, in one call: (N, V)."""


class Independent(AnyDecoder, Protocol):
    """A decoder of labels that are independent, given the document."""

    def logits(self, encoding: Encoding) -> Tensor:
        """Return the log-odds of each label: (B, L)."""
