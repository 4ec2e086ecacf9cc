"""Several tokenizers at once: one row of ids per document that holds the ids of each of them.

A mixture may have members with different tokenizers. Everything between the texts and the system
handles one row per document; the system splits it again.
"""

# n documents, P tokenizers

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.data.text.words import NUMBERED, NameText, TextEncoder


@dataclass(frozen=True)
class JointEncoder(TextEncoder):
    """Turns documents into rows: the number of ids of each tokenizer, then their ids.

    The tokenizer and the lengths are those of the first one.
    """

    encoders: tuple[TextEncoder, ...] = ()

    @property
    def parts(self) -> tuple[TextEncoder, ...]:
        """The encoder of each tokenizer."""
        return self.encoders

    @cached_property
    def n_tokens(self) -> int:
        """The most ids that a tokenizer has."""
        return max(each.n_tokens for each in self.encoders)

    def encode(
        self,
        texts: Sequence[str],
        features: Sequence[Sequence[str]] = (),
        name: NameText = NUMBERED,
    ) -> Ragged:
        """Return one row per document."""
        return join_rows([each.encode(texts, features, name) for each in self.encoders])

    def is_same(self, other: TextEncoder) -> bool:
        """Return whether another encoder gives the same ids."""
        pairs = zip(self.parts, other.parts, strict=False)
        return len(self.parts) == len(other.parts) and all(a.is_same(b) for a, b in pairs)


def join_encoders(encoders: Sequence[TextEncoder]) -> TextEncoder:
    """Return an encoder of several tokenizers; of one, the encoder itself."""
    first = encoders[0]
    if len(encoders) == 1:
        return first
    return JointEncoder(first.tokenizer, first.max_words, first.windows, tuple(encoders))


def join_rows(parts: Sequence[Ragged]) -> Ragged:
    """Join the rows of several tokenizers.

    Example:
        >>> words, subwords = Ragged.from_lists([[7, 8], []]), Ragged.from_lists([[3], [4, 5, 6]])
        >>> joined = join_rows([words, subwords])
        >>> joined[0].tolist(), joined[1].tolist()
        ([2, 1, 7, 8, 3], [0, 3, 4, 5, 6])
        >>> [part.padded().tolist() for part in split_rows(joined, 2)]
        [[[7, 8], [-1, -1]], [[3, -1, -1], [4, 5, 6]]]
    """
    lengths = np.stack([each.lengths for each in parts], axis=1)  # (n, P)
    joined = Ragged.from_lengths(
        lengths.astype(np.int32).ravel(), np.full(len(lengths), len(parts))
    )
    for each in parts:
        joined = joined.append(each)
    return joined


def split_rows(tokens: Ragged, n_parts: int) -> list[Ragged]:
    """Return the rows of each tokenizer; those of one tokenizer are not joined."""
    if n_parts == 1:
        return [tokens]
    starts = np.asarray(tokens.offsets[:-1])
    lengths = np.asarray(tokens.values)[starts[:, None] + np.arange(n_parts)].astype(np.int64)
    ends = starts[:, None] + n_parts + lengths.cumsum(axis=1)  # (n, P)
    return [
        tokens.spans(end - length, length) for end, length in zip(ends.T, lengths.T, strict=True)
    ]
