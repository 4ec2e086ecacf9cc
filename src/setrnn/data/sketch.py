"""Recognise documents that a model was trained on, from hashes of some of them.

The hashes are those of texts, without case and white space: the texts cannot be read from them. Of
many documents only the smallest hashes are kept, those of a random sample (bottom-k sketch). A
document is examined if its hash is as small; then it is known whether it was trained on.
"""

# n documents, H hashes

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

ARRAY = "trained_texts"  # in a model folder
Hashes = npt.NDArray[np.uint64]

MAX_HASHES = 1 << 16  # half a megabyte
LARGEST = np.uint64(2**64 - 1)
NOTHING = np.uint64(0)  # the hash of a text without words, which is never recognised


@dataclass(frozen=True)
class DocumentSketch:
    """The hashes of all trained documents that are not above the limit.

    Example:
        >>> sketch = DocumentSketch.of(hash_texts(["Rates rise to 4%", "A late goal"]))
        >>> sketch.recognise(hash_texts(["rates  rise to 4%", "Rates rise to 5%", ""])).tolist()
        [True, False, False]
    """

    hashes: Hashes  # (H,) increasing
    limit: np.uint64  # the largest hash if there are more documents

    @classmethod
    def of(cls, hashes: Hashes, most: int = MAX_HASHES) -> DocumentSketch:
        """Return the sketch of the documents with these hashes."""
        found = np.unique(hashes[hashes != NOTHING])
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

    def examines(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return which documents can be recognised, (n,)."""
        return np.asarray((hashes <= self.limit) & (hashes != NOTHING))

    def recognise(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return which documents were trained on, (n,); of a sample, only some are found."""
        return np.isin(hashes, self.hashes)


def pack_sketch(sketch: DocumentSketch | None) -> dict[str, npt.NDArray[Any]]:
    """Return the array of a model folder; none if the documents are not known."""
    if sketch is None:
        return {}
    return {ARRAY: np.concatenate([[sketch.limit], sketch.hashes]).astype(np.uint64)}


def unpack_sketch(arrays: dict[str, npt.NDArray[Any]]) -> DocumentSketch | None:
    """Take the sketch out of the arrays of a model folder; raise ValueError if it is damaged."""
    if ARRAY not in arrays:
        return None
    found = arrays.pop(ARRAY)
    if found.dtype != np.uint64 or found.ndim != 1 or not found.size:
        raise ValueError("the hashes of the trained documents are damaged.")
    return DocumentSketch(found[1:], found[0])


def hash_texts(texts: Iterable[str]) -> Hashes:
    """Return the hash of each text, (n,)."""
    hashes = b"".join(text_hash(text) if text.strip() else bytes(8) for text in texts)
    return np.frombuffer(hashes, dtype="<u8").astype(np.uint64)


def text_hash(text: str) -> bytes:
    """Return a hash of a text that ignores case and white space."""
    return words_hash(text.split())


def words_hash(words: Sequence[str]) -> bytes:
    """Return the hash of a text with these words."""
    return string_hash(" ".join(words).lower())


def string_hash(text: str) -> bytes:
    """Return a hash of a string, eight bytes."""
    # JSON may hold half of a surrogate pair, which plain UTF-8 refuses.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
