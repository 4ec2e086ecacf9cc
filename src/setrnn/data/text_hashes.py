"""Hashes of texts: they tell whether a model was trained on a document.

They ignore case and white space, and the texts cannot be read from them.
"""

# n documents, H hashes

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
NOTHING = np.uint64(0)  # the hash of a text without words, which is never recognised


def join_hashes(parts: Sequence[Hashes]) -> Hashes:
    """Return the hashes of documents, in ascending order and without repeats: (H,).

    Example:
        >>> trained = join_hashes([hash_texts(["Rates rise to 4%", "A late goal", ""])])
        >>> np.isin(hash_texts(["rates  rise to 4%", "Rates rise to 5%", ""]), trained).tolist()
        [True, False, False]
    """
    return np.setdiff1d(np.concatenate(parts), NOTHING)  # sorted and unique


def hash_texts(texts: Iterable[str]) -> Hashes:
    """Return the hash of each text, (n,)."""
    hashes = b"".join(text_hash(text) if text.strip() else bytes(8) for text in texts)
    return np.frombuffer(hashes, dtype="<u8").astype(np.uint64)


def text_hash(text: str) -> bytes:
    """Return a hash of a text that ignores case and white space."""
    return string_hash(" ".join(text.split()).lower())


def sampling_rank(document_id: str, text: str) -> int:
    """Return a number that orders documents at random: a sample has those with the lowest."""
    return int.from_bytes(string_hash(f"{document_id}\0{text}"), "little")


def string_hash(text: str) -> bytes:
    """Return a hash of a string, eight bytes."""
    # JSON may hold half of a surrogate pair, which plain UTF-8 refuses.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
