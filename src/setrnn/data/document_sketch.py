"""Recognise documents that a model was trained on, from hashes of some of them.

The hashes are those of token ids: the documents themselves cannot be read from them. Of many
documents only the smallest hashes are kept, those of a random sample (bottom-k sketch). A document
is examined if its hash is as small; then it is known whether it was trained on.
"""

# n documents, T tokens of all documents, H hashes

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.data.ragged import Ragged

ARRAY = "trained_documents"  # in a model folder, followed by the number of the tokenizer
Hashes = npt.NDArray[np.uint64]

MOST_HASHES = 1 << 16  # half a megabyte
HASHED_AT_ONCE = 1 << 15  # documents
LARGEST = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class DocumentSketch:
    """The hashes of all trained documents that are not above the limit.

    Example:
        >>> trained, new = Ragged.from_lists([[1, 2], [3]]), Ragged.from_lists([[3], [2, 1]])
        >>> DocumentSketch.of(trained).has(hash_rows(new)).tolist()
        [True, False]
    """

    hashes: Hashes  # (H,) increasing
    limit: np.uint64  # the largest hash if there are more documents

    @classmethod
    def of(cls, tokens: Ragged, most: int = MOST_HASHES) -> DocumentSketch:
        """Return the sketch of the documents with these token ids."""
        found = np.unique(hash_rows(tokens))
        if len(found) <= most:
            return cls(found, LARGEST)
        return cls(found[:most], found[most - 1])

    @classmethod
    def union(cls, sketches: Sequence[DocumentSketch]) -> DocumentSketch:
        """Return the sketch of the documents of all sketches."""
        limit = min(each.limit for each in sketches)
        joined = np.unique(np.concatenate([each.hashes for each in sketches]))
        return cls(joined[joined <= limit], limit)

    @property
    def is_complete(self) -> bool:
        """Whether there are hashes of all documents, not of a sample."""
        return bool(self.limit == LARGEST)

    def examine(self, tokens: Ragged) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """Return the hashes of the documents that can be recognised, and their lengths."""
        found, lengths = hash_rows(tokens), np.asarray(tokens.lengths, dtype=np.int64)
        is_examined = found <= self.limit
        return found[is_examined], lengths[lengths > 0][is_examined]

    def has(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return which of the examined documents were trained on."""
        return np.isin(hashes, self.hashes)

    def find_seen(self, tokens: Ragged) -> npt.NDArray[np.bool_]:
        """Return whether each document was trained on, (n,); of a sample, only some are found."""
        is_seen = np.zeros(len(tokens), dtype=bool)
        is_seen[tokens.lengths > 0] = np.isin(hash_rows(tokens), self.hashes)
        return is_seen

    def recognise(self, tokens: Ragged) -> npt.NDArray[np.bool_]:
        """Return which documents were trained on; only a complete sketch knows that of each."""
        is_seen = tokens.lengths > 0
        is_seen[is_seen] = np.isin(hash_rows(tokens), self.hashes)
        return is_seen


def pack_sketches(sketches: Sequence[DocumentSketch]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a model folder: one sketch per tokenizer."""
    return {
        f"{ARRAY}.{number}": np.concatenate([[each.limit], each.hashes]).astype(np.uint64)
        for number, each in enumerate(sketches)
    }


def unpack_sketches(
    arrays: dict[str, npt.NDArray[Any]], n_parts: int
) -> tuple[DocumentSketch, ...]:
    """Take the sketches out of the arrays of a model folder; raise ValueError if one is damaged."""
    found = [arrays.pop(name) for name in sorted(arrays) if name.startswith(f"{ARRAY}.")]
    if not found:
        return ()
    is_sound = all(each.dtype == np.uint64 and each.ndim == 1 and each.size for each in found)
    if not is_sound or len(found) != n_parts:
        raise ValueError("the hashes of the trained documents do not fit the tokenizers.")
    return tuple(DocumentSketch(each[1:], each[0]) for each in found)


def hash_rows(tokens: Ragged) -> Hashes:
    """Return a hash of each document, of its token ids in their order; empty ones have none."""
    parts = [np.zeros(0, dtype=np.uint64)]
    for start in range(0, len(tokens), HASHED_AT_ONCE):
        rows = tokens.rows(start, min(start + HASHED_AT_ONCE, len(tokens)))
        lengths = rows.lengths
        place = np.arange(len(rows.values)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        ids = np.asarray(rows.values).astype(np.uint64)
        mixed = _mix(ids + (place.astype(np.uint64) << np.uint64(32)))  # (T,)
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        ends = np.cumsum(lengths)
        parts.append(_mix(sums[ends] - sums[ends - lengths])[lengths > 0])
    return np.concatenate(parts)


def _mix(values: Hashes) -> Hashes:
    """Return pseudo-random numbers that depend on values: splitmix64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed
