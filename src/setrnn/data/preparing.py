"""Prepare documents: make their prepared folder in two passes over streams, in bounded memory.

The first pass counts labels and features, and samples texts for the vocabulary: by their hashes, so
that the sample does not depend on their order. The second pass writes token ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding

from setrnn.config import TextSettings, to_dict
from setrnn.data.disk import whole_folder
from setrnn.data.example import Example, name_example
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.prepared import (
    HIERARCHY,
    UNKNOWN,
    UNLABELLED,
    Prepared,
    is_prepared,
    write_description,
)
from setrnn.data.ragged import Ragged
from setrnn.data.sketch import hash_texts
from setrnn.data.streaming import batched, prefetch
from setrnn.data.text.languages import settle_language
from setrnn.data.text.vocabulary import Vocabulary, learn_vocabulary
from setrnn.data.text.words import TextEncoder, rank_words
from setrnn.data.unknown import encode_unknown
from setrnn.errors import DataError

BATCH = 4096
_ABOVE_ALL = 2**64

Stream = Callable[[], Iterable[Example]]
OnDocuments = Callable[[str, int], None]


def prepare(
    splits: Mapping[str, Stream],
    target: Path,
    name: str,
    settings: TextSettings,
    source: Mapping[str, Any],
    on_documents: OnDocuments = lambda step, n_documents: None,
    known: Vocabulary | None = None,
    hierarchy: Hierarchy | None = None,
    about: Mapping[str, Any] | None = None,
) -> Prepared:
    """Write the prepared form of documents to `target`, completely or not at all.

    Args:
        splits: a function per split that streams it, any number of times; train is required.
        target: the folder to write.
        name: the name of the dataset.
        settings: how texts become words.
        source: where the data came from, kept in the description.
        on_documents: called with the step and the number of documents processed since the last
            call.
        known: the vocabulary of a model, to which that of the data is added.
        hierarchy: the parents of labels. Labels of the documents are not changed.
        about: more values of the description.

    Example:
        >>> import tempfile
        >>> examples = [Example("1", "Rates rise", ("economy",)), Example("2", "A late goal")]
        >>> target = Path(tempfile.mkdtemp()) / "news"
        >>> prepared = prepare({"train": lambda: examples}, target, "news", TextSettings(), {})
        >>> prepared.labels.names, len(prepared.split("train"))
        (('economy',), 2)
    """
    if "train" not in splits:
        raise DataError(f"{name} has no 'train' part: found {', '.join(splits) or 'nothing'}.")
    if target.exists() and not is_prepared(target) and any(target.iterdir()):
        raise DataError(
            f"{target} exists and is not a prepared folder. Remove it, or name another."
        )
    description: dict[str, Any] = {"name": name, "source": dict(source), "n_skipped_rows": {}}
    if hierarchy is not None:
        description[HIERARCHY] = hierarchy.as_dict()
    if known is None and "language" not in (about or {}):
        settings, look = settle_language((each.text for each in splits["train"]()), settings)
        description["language"] = look.describe()
    description |= about or {}
    with whole_folder(target) as folder:
        counted = chain.from_iterable(
            splits[each]() for each in ("train", UNLABELLED) if each in splits
        )
        extend = learn_vocabulary if known is None else known.extend
        encoder, labels = extend(
            *count_documents(counted, settings, partial(on_documents, "vocabulary")), settings
        )
        encoder.save(folder / "tokenizer.json")
        labels.save(folder / "labels.json")
        dtype, label_ids = smallest_dtype(encoder.n_tokens), dict(labels.index)
        writers = {}
        for split, stream in splits.items():
            with SplitWriter(folder / split, dtype) as writers[split]:
                report = partial(on_documents, split)
                encode_documents(stream(), writers[split], encoder, label_ids, len(labels), report)
        description |= {
            "text": to_dict(settings),
            "n_documents": {split: each.n_documents for split, each in writers.items()},
            "n_windows": {
                split: {str(n): each.n_windows[n] for n in sorted(each.n_windows)}
                for split, each in writers.items()
            },
            "n_tokens": encoder.n_tokens,
            "n_labels": len(labels),
            "unseen_labels": list(label_ids)[len(labels) :],
            "token_dtype": dtype.name,
        }
        write_description(folder, description)
    return Prepared(target)


def smallest_dtype(n_values: int) -> np.dtype[Any]:
    """Return the smallest of our types that can hold ids below `n_values`."""
    return np.dtype(np.uint16 if n_values <= 2**16 else np.int32)


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

    def add(self, hashed: int, text: str) -> None:
        """Add a document by its hash."""
        if hashed in self._kept:
            self._kept[hashed] = (text, self._kept[hashed][1] + 1)
        elif self.is_wanted(hashed):
            self._kept[hashed] = (text, 1)
            if len(self._kept) > self.limit + self.limit // 4:
                self._cut()

    def texts(self) -> Iterator[str]:
        """Yield the texts in the order of their hashes, as often as they occur."""
        self._cut()
        kept = (self._kept[hashed] for hashed in sorted(self._kept))
        return chain.from_iterable(repeat(text, n_times) for text, n_times in kept)

    def _cut(self) -> None:
        if len(self._kept) >= self.limit:
            lowest = sorted(self._kept)[: self.limit]
            self._most = lowest[-1]
            self._kept = {hashed: self._kept[hashed] for hashed in lowest}


def count_documents(
    examples: Iterable[Example], settings: TextSettings, on_documents: Callable[[int], None]
) -> tuple[Counter[str], Callable[[], list[str]], list[str]]:
    """Return the counts of labels, a function that ranks words, and the frequent features."""
    labels, features = Counter[str](), Counter[str]()
    sample = Sample(settings.vocabulary_documents)
    # What is read of a text for the vocabulary.
    n_characters = 20 * settings.max_words * settings.windows
    for batch in batched(examples, BATCH):
        labels.update(chain.from_iterable(example.labels for example in batch))
        features.update(chain.from_iterable(example.features for example in batch))
        for example in batch:
            hashed = hash_text(f"{example.id}\0{example.text}")
            if sample.is_wanted(hashed):
                sample.add(hashed, example.text[:n_characters])
        on_documents(len(batch))
    ranked = sorted(features.items(), key=lambda item: (-item[1], item[0]))
    frequent = [name for name, count in ranked if count >= settings.min_count]

    def rank() -> list[str]:
        return rank_words(sample.texts(), settings.min_count, settings.language)

    return labels, rank, frequent[: settings.max_features]


def hash_text(text: str) -> int:
    """Return a number below 2**64 that is the same in every process."""
    # JSON may hold half of a surrogate pair, which plain UTF-8 refuses.
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class SplitWriter:
    """Appends documents to the files of one split; a context manager."""

    def __init__(self, folder: Path, token_dtype: npt.DTypeLike) -> None:
        folder.mkdir()
        self.n_documents = 0
        self.n_windows = Counter[int]()  # documents by the windows that their whole text fills
        self._dtypes: dict[str, npt.DTypeLike] = {
            "token": token_dtype,
            "label": np.int32,
            "id": np.uint8,
            "fingerprint": np.uint64,
        }
        self._folder = folder
        self._ends = dict.fromkeys(self._dtypes, 0)
        kinds = [f"{name}{kind}.bin" for name in self._dtypes for kind in ("s", "_offsets")]
        self._files = {kind: (folder / kind).open("wb") for kind in kinds}
        for name in self._dtypes:
            self._files[f"{name}_offsets.bin"].write(bytes(8))  # the first row begins at 0

    def __enter__(self) -> SplitWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._files.values():
            file.close()

    def append(
        self,
        examples: Sequence[Example],
        tokens: Ragged,
        labels: Ragged,
        unknown: Ragged | None = None,
    ) -> None:
        """Write a batch of documents; unknown labels have files only if there are some."""
        self._append_unknown(len(examples), unknown)
        encoded = [example.id.encode() for example in examples]
        id_bytes = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        id_rows = Ragged.from_lengths(id_bytes, np.array([*map(len, encoded)], dtype=np.int64))
        hashes = hash_texts(example.text for example in examples)
        hash_rows = Ragged.from_lengths(hashes, np.ones(len(examples), dtype=np.int64))
        all_rows = {"token": tokens, "label": labels, "id": id_rows, "fingerprint": hash_rows}
        for name, rows in all_rows.items():
            self._files[f"{name}s.bin"].write(rows.values.astype(self._dtypes[name]).tobytes())
            ends = self._ends[name] + rows.offsets[1:]
            self._files[f"{name}_offsets.bin"].write(ends.tobytes())
            self._ends[name] += len(rows.values)
        self.n_documents += len(examples)

    def _append_unknown(self, n_documents: int, unknown: Ragged | None) -> None:
        """Write the unknown labels of a batch; None if there are none."""
        name, values = UNKNOWN, f"{UNKNOWN}s.bin"
        if unknown is None and name not in self._ends:
            return
        if name not in self._ends:  # the documents before have none
            self._ends[name] = 0
            for file in (values, f"{name}_offsets.bin"):
                self._files[file] = (self._folder / file).open("wb")
            self._files[f"{name}_offsets.bin"].write(bytes(8 * (self.n_documents + 1)))
        ends = np.zeros(n_documents, dtype=np.int64)
        if unknown is not None:
            self._files[values].write(unknown.values.astype(np.int32).tobytes())
            ends = unknown.offsets[1:]
        self._files[f"{name}_offsets.bin"].write((self._ends[name] + ends).tobytes())
        self._ends[name] += 0 if unknown is None else len(unknown.values)


def encode_documents(
    examples: Iterable[Example],
    writer: SplitWriter,
    encoder: TextEncoder,
    label_ids: dict[str, int],
    n_labels: int,
    on_documents: Callable[[int], None],
) -> None:
    """Turn documents into ids and write them; labels without an id get the next one.

    The tokenizer runs in a thread of its own. Only the first `n_labels`, those of train, can be
    unknown.
    """
    can_be_unknown = dict(islice(label_ids.items(), n_labels))

    def tokenize(batch: list[Example]) -> tuple[list[Example], list[Encoding]]:
        texts = [example.text for example in batch]
        return batch, encoder.tokenize(texts, partial(name_example, batch))

    for batch, encodings in prefetch(tokenize, batched(examples, BATCH), n_ahead=2):
        tokens = encoder.pack(encodings, [example.features for example in batch])
        writer.n_windows.update(encoder.count_windows(encodings))
        unknown = encode_unknown(batch, can_be_unknown)
        writer.append(batch, tokens, _label_rows(batch, label_ids), unknown)
        on_documents(len(batch))


def _label_rows(examples: list[Example], label_ids: dict[str, int]) -> Ragged:
    rows = []
    for example in examples:
        ids = [label_ids.setdefault(label, len(label_ids)) for label in example.labels]
        rows.append(sorted(ids))
    return Ragged.from_lists(rows)
