"""The first pass over documents: count labels and features, and sample texts for the vocabulary.

The counts of several pieces of the data are added. The result depends neither on where the pieces
begin nor on their order: texts are sampled by their hashes, not by their positions.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setrnn.config import AUTO, TextSettings
from setrnn.data.example import Example
from setrnn.data.streaming import batched
from setrnn.data.tokenizing import rank_words, split_words

BATCH = 4096
COUNTS_FILE, SAMPLE_FILE = "counts.json", "sample.jsonl"
HASHES_FILE, IDS_FILE = "hashes.bin", "ids.bin"
_ABOVE_ALL = 2**64


class Sample:
    """The documents with the lowest hashes, at most `limit` different ones: an even sample.

    Which documents these are does not depend on their order.

    Example:
        >>> sample = Sample(limit=2)
        >>> for hashed, text in ((7, "a"), (3, "b"), (5, "c"), (3, "b")):
        ...     sample.add(hashed, text)
        >>> list(sample.texts())
        ['b', 'b', 'c']
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: dict[int, tuple[str, int]] = {}  # each text, and how often it occurs
        self._most = _ABOVE_ALL  # higher hashes are not wanted

    def is_wanted(self, hashed: int) -> bool:
        """Return whether a document with this hash may be among the lowest."""
        return hashed <= self._most

    def add(self, hashed: int, text: str, n_times: int = 1) -> None:
        """Add a document by its hash."""
        if hashed in self._kept:
            self._kept[hashed] = (text, self._kept[hashed][1] + n_times)
        elif self.is_wanted(hashed):
            self._kept[hashed] = (text, n_times)
            if len(self._kept) > self.limit + self.limit // 4:
                self._cut()

    def rows(self) -> list[tuple[int, str, int]]:
        """Return the hash of each document, its text, and how often it occurs, by the hash."""
        self._cut()
        return [(hashed, *self._kept[hashed]) for hashed in sorted(self._kept)]

    def texts(self) -> Iterator[str]:
        """Yield the texts, as often as they occur."""
        return chain.from_iterable(repeat(text, n_times) for _, text, n_times in self.rows())

    def _cut(self) -> None:
        if len(self._kept) >= self.limit:
            lowest = sorted(self._kept)[: self.limit]
            self._most = lowest[-1]
            self._kept = {hashed: self._kept[hashed] for hashed in lowest}


class Counts:
    """What the first pass finds in one piece of the data, or in several."""

    def __init__(self, settings: TextSettings) -> None:
        self.settings = settings
        self.n_documents = 0
        self.labels, self.features = Counter[str](), Counter[str]()
        self.sample = Sample(settings.vocabulary_documents)
        self.words: Counter[str] | None = None  # of the sample, if others have counted them
        self.id_hashes = array("Q")  # in the order of the documents, if they are kept

    def add(self, other: Counts) -> None:
        """Add the counts of another piece; hashes of ids are not added."""
        self._add_numbers(other.n_documents, other.labels, other.features)
        for row in other.sample.rows():
            self.sample.add(*row)

    def frequent_words(self) -> list[str]:
        """Return the words that occur often enough, in descending order of frequency."""
        if self.words is None:
            settings = self.settings
            return rank_words(self.sample.texts(), settings.min_count, settings.language)
        return _rank(self.words, self.settings.min_count)

    def frequent_features(self) -> list[str]:
        """Return the features that become tokens, in descending order of frequency."""
        return _rank(self.features, self.settings.min_count)[: self.settings.max_features]

    def save(self, folder: Path) -> None:
        """Write the counts to files, for another process."""
        folder.mkdir()
        values = [self.n_documents, self.labels, self.features]
        (folder / COUNTS_FILE).write_text(json.dumps(values), encoding="utf-8")
        rows = self.sample.rows()
        with (folder / SAMPLE_FILE).open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(row)}\n" for row in rows)
        np.array([row[0] for row in rows], dtype=np.uint64).tofile(folder / HASHES_FILE)
        np.array(self.id_hashes, dtype=np.uint64).tofile(folder / IDS_FILE)

    def add_saved(self, folder: Path) -> None:
        """Add the counts of files, except the sample."""
        self._add_numbers(*json.loads((folder / COUNTS_FILE).read_text(encoding="utf-8")))

    def add_saved_words(self, file: Path) -> None:
        """Add the words that `count_saved_words` has counted."""
        self.words = Counter() if self.words is None else self.words
        self.words.update(json.loads(file.read_text(encoding="utf-8")))

    def _add_numbers(
        self, n_documents: int, labels: dict[str, int], features: dict[str, int]
    ) -> None:
        self.n_documents += n_documents
        self.labels.update(labels)
        self.features.update(features)


def count_saved_words(folder: Path, most: int, out: Path, language: str = AUTO) -> None:
    """Count the words of a saved sample up to a hash, and save the result."""
    words = Counter[str]()
    with (folder / SAMPLE_FILE).open(encoding="utf-8") as file:
        for hashed, text, n_times in map(json.loads, file):
            if hashed > most:
                break
            for word, n in Counter(split_words(text, language)).items():
                words[word] += n * n_times
    out.write_text(json.dumps(words), encoding="utf-8")


def find_highest_hash(folders: Iterable[Path], limit: int) -> int:
    """Return the highest hash of the sample of several pieces together."""
    hashes = np.unique(np.concatenate([_read_hashes(each / HASHES_FILE) for each in folders]))
    return int(hashes[limit - 1]) if len(hashes) > limit else _ABOVE_ALL


def read_id_hashes(folder: Path) -> npt.NDArray[np.uint64]:
    """Return the hashes of ids that were saved."""
    return _read_hashes(folder / IDS_FILE)


def _read_hashes(file: Path) -> npt.NDArray[np.uint64]:
    return np.fromfile(file, dtype=np.uint64)


def _rank(counts: Mapping[str, int], min_count: int) -> list[str]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [name for name, count in ranked if count >= min_count]


def count_documents(
    examples: Iterable[Example],
    settings: TextSettings,
    on_documents: Callable[[int], None],
    keeps_ids: bool = False,
) -> Counts:
    """Count the labels and features of documents, and sample their texts."""
    counts = Counts(settings)
    # What is read of a text for the vocabulary.
    n_characters = 20 * settings.max_words * settings.windows
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
