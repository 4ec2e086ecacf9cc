"""The first pass over documents: count labels and features, and sample texts for the vocabulary.

The counts of several pieces of the data are added. The result depends neither on where the pieces
begin nor on their order: texts are sampled by their hashes, not by their positions.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setrnn.config import TextSettings
from setrnn.data.example import Example
from setrnn.data.streaming import batched

BATCH = 4096
COUNTS_FILE, SAMPLE_FILE, IDS_FILE = "counts.json", "sample.jsonl", "ids.bin"
_ABOVE_ALL = 2**64


class Sample:
    """The texts with the lowest hashes, at most `limit`: an even sample in any order.

    Example:
        >>> sample = Sample(limit=2)
        >>> for hashed, text in ((7, "a"), (3, "b"), (5, "c")):
        ...     sample.add(hashed, text)
        >>> sample.texts()
        ['b', 'c']
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: list[tuple[int, str]] = []
        self._below = _ABOVE_ALL  # hashes that are not below are too high

    def is_wanted(self, hashed: int) -> bool:
        """Return whether a text with this hash may be among the lowest."""
        return hashed < self._below

    def add(self, hashed: int, text: str) -> None:
        """Add a text by its hash."""
        if self.is_wanted(hashed):
            self._kept.append((hashed, text))
            if len(self._kept) > self.limit + self.limit // 4 + 1:
                self._cut()

    def pairs(self) -> list[tuple[int, str]]:
        """Return the texts with their hashes, in ascending order."""
        self._cut()
        return self._kept

    def texts(self) -> list[str]:
        """Return the texts."""
        return [text for _, text in self.pairs()]

    def _cut(self) -> None:
        self._kept.sort()
        del self._kept[self.limit :]
        if len(self._kept) == self.limit:
            self._below = self._kept[-1][0]


class Counts:
    """What the first pass finds in one piece of the data, or in several."""

    def __init__(self, settings: TextSettings) -> None:
        self.settings = settings
        self.n_documents = 0
        self.labels, self.features = Counter[str](), Counter[str]()
        self.sample = Sample(settings.vocabulary_documents)
        self.id_hashes = array("Q")  # in the order of the documents, if they are kept

    def add(self, other: Counts) -> None:
        """Add the counts of another piece; hashes of ids are not added."""
        self._add_numbers(other.n_documents, other.labels, other.features)
        for hashed, text in other.sample.pairs():
            self.sample.add(hashed, text)

    def frequent_features(self) -> list[str]:
        """Return the features that become tokens, in descending order of frequency."""
        ranked = sorted(self.features.items(), key=lambda item: (-item[1], item[0]))
        frequent = [name for name, count in ranked if count >= self.settings.min_count]
        return frequent[: self.settings.max_features]

    def save(self, folder: Path) -> None:
        """Write the counts to files."""
        folder.mkdir()
        values = [self.n_documents, self.labels, self.features]
        (folder / COUNTS_FILE).write_text(json.dumps(values), encoding="utf-8")
        with (folder / SAMPLE_FILE).open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(pair)}\n" for pair in self.sample.pairs())
        with (folder / IDS_FILE).open("wb") as stream:
            self.id_hashes.tofile(stream)

    def add_saved(self, folder: Path) -> None:
        """Add the counts of files; texts that are not wanted are not read."""
        self._add_numbers(*json.loads((folder / COUNTS_FILE).read_text(encoding="utf-8")))
        with (folder / SAMPLE_FILE).open(encoding="utf-8") as file:
            for hashed, text in map(json.loads, file):
                if not self.sample.is_wanted(hashed):
                    break
                self.sample.add(hashed, text)

    def _add_numbers(
        self, n_documents: int, labels: dict[str, int], features: dict[str, int]
    ) -> None:
        self.n_documents += n_documents
        self.labels.update(labels)
        self.features.update(features)


def count_documents(
    examples: Iterable[Example],
    settings: TextSettings,
    on_documents: Callable[[int], None],
    keeps_ids: bool = False,
) -> Counts:
    """Count the labels and features of documents, and sample their texts."""
    counts = Counts(settings)
    n_characters = 20 * settings.max_words  # that are read of a text for the vocabulary
    for batch in batched(examples, BATCH):
        counts.n_documents += len(batch)
        counts.labels.update(chain.from_iterable(example.labels for example in batch))
        counts.features.update(chain.from_iterable(example.features for example in batch))
        for example in batch:
            hashed = hash_text(f"{example.id}\0{example.text}")
            if counts.sample.is_wanted(hashed):
                counts.sample.add(hashed, example.text[:n_characters])
        if keeps_ids:
            counts.id_hashes.extend(hash_text(example.id) for example in batch)
        on_documents(len(batch))
    return counts


def hash_text(text: str) -> int:
    """Return a number below 2**64 that is the same in every process."""
    # JSON may hold half of a surrogate pair, which plain UTF-8 refuses.
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def find_shared_id(hashes: list[npt.NDArray[np.uint64]]) -> tuple[int, int] | None:
    """Return the piece and the place of the first document whose id an earlier piece has.

    Args:
        hashes: the hashes of the ids of each piece, in the order of the documents.

    Example:
        >>> find_shared_id([np.array([5, 6], dtype=np.uint64), np.array([7, 6], dtype=np.uint64)])
        (1, 1)
    """
    together = np.concatenate(hashes) if hashes else np.empty(0, dtype=np.uint64)
    order = np.argsort(together, kind="stable")
    starts = np.cumsum([0, *map(len, hashes)])
    pieces = np.searchsorted(starts, order, side="right") - 1
    is_equal = together[order[1:]] == together[order[:-1]]
    shared = order[1:][is_equal & (pieces[1:] != pieces[:-1])]
    if not len(shared):
        return None
    place = int(shared.min())
    piece = int(np.searchsorted(starts, place, side="right")) - 1
    return piece, place - int(starts[piece])
