"""The prepared form of a dataset: a memory-mapped folder, which is all that training reads.

    NAME-HASH/
        prepared.json      format, settings, sources, sizes
        tokenizer.json     texts to ids
        labels.json        the labels of train, in descending order of frequency
        train/ valid/ test/
            tokens.bin  token_offsets.bin  labels.bin  label_offsets.bin  ids.bin  id_offsets.bin
        word_vectors-HASH.npy   one row per token id, then one per label

A label of valid or test that train lacks has an id after the others: see `unseen_labels`.

`prepare` makes the folder in two passes and bounded memory. The first pass over train counts
labels and features and collects texts for the vocabulary. The second turns every split into ids:
the tokenizer uses all cores, in a thread of its own.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding

from setrnn.config import WORDS, TextSettings, from_dict, to_dict
from setrnn.data.example import Example, name_example
from setrnn.data.folders import whole_folder
from setrnn.data.labels import LabelVocabulary, distinct_sets
from setrnn.data.ragged import Ragged
from setrnn.data.subwords import load_text_encoder, pretrained_encoder
from setrnn.data.tokenizing import TextEncoder, learn_tokenizer
from setrnn.errors import DataError

FORMAT = 1
DESCRIPTION_FILE = "prepared.json"
BATCH = 4096

Stream = Callable[[], Iterable[Example]]
T = TypeVar("T")
Made = TypeVar("Made")


@dataclass(frozen=True)
class PreparedSplit:
    """One split: its tokens, label sets and ids, memory-mapped."""

    tokens: Ragged
    labels: Ragged
    id_bytes: Ragged

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self, start: int, stop: int) -> list[str]:
        """Return the ids of consecutive documents."""
        return [row.tobytes().decode() for row in self.id_bytes.rows(start, stop)]


class Prepared:
    """An open prepared folder.

    Example:
        >>> import setrnn
        >>> prepared = setrnn.prepare("newsroom")
        >>> prepared.splits
        ['train', 'valid', 'test']
        >>> len(prepared.labels), len(prepared.split("test"))
        (65, 600)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.description: dict[str, Any] = json.loads(
                (folder / DESCRIPTION_FILE).read_text(encoding="utf-8")
            )
        except (OSError, ValueError) as error:
            raise DataError(f"{folder} is not a prepared folder, or is cut short.") from error
        is_dict = isinstance(self.description, dict)
        if is_dict and self.description.get("format") != FORMAT:
            raise DataError(
                f"{folder} was prepared by another version of setrnn. Prepare the data again."
            )
        if not is_dict or not {"n_documents", "token_dtype"} <= self.description.keys():
            raise DataError(f"{folder / DESCRIPTION_FILE} is damaged. Prepare the data again.")
        for name in ("tokenizer.json", "labels.json"):
            if not (folder / name).is_file():
                raise DataError(f"{folder} lacks {name}. Prepare the data again.")

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return str(self.description["name"])

    @property
    def splits(self) -> list[str]:
        """The names of the splits."""
        return list(self.description["n_documents"])

    @cached_property
    def text_settings(self) -> TextSettings:
        """The settings that texts were processed with."""
        return from_dict(TextSettings, self.description["text"])

    @cached_property
    def encoder(self) -> TextEncoder:
        """The tokenizer."""
        return load_text_encoder(self.folder / "tokenizer.json", self.text_settings)

    @cached_property
    def labels(self) -> LabelVocabulary:
        """The labels of train."""
        return LabelVocabulary.load(self.folder / "labels.json")

    @property
    def n_skipped_rows(self) -> int:
        """The number of rows that could not be read and were skipped."""
        return sum(self.description["n_skipped_rows"].values())

    @property
    def unseen_labels(self) -> list[str]:
        """Labels of valid and test that train lacks; their ids follow the others."""
        return list(self.description["unseen_labels"])

    @property
    def valid_is_cut(self) -> bool:
        """Whether the valid split was cut from train because the data had none."""
        return bool(self.description.get("valid_is_cut", False))

    def seen_sets(self) -> Ragged:
        """Return the distinct label sets of train."""
        return distinct_sets(self.split("train").labels)[0]

    def split(self, name: str) -> PreparedSplit:
        """Open one split."""
        if name not in self.splits:
            raise DataError(
                f"{self.folder} has no '{name}' part: it holds {', '.join(self.splits)}."
            )
        part = self.folder / name
        dtype = np.dtype(self.description["token_dtype"])
        split = PreparedSplit(
            tokens=_open_ragged(part, "token", dtype),
            labels=_open_ragged(part, "label", np.dtype(np.int32)),
            id_bytes=_open_ragged(part, "id", np.dtype(np.uint8)),
        )
        n_documents = self.description["n_documents"][name]
        if {len(split.tokens), len(split.labels), len(split.id_bytes)} != {n_documents}:
            raise DataError(f"{part} is cut short. Prepare the data again.")
        return split


class SplitWriter:
    """Appends documents to the files of one split; a context manager."""

    def __init__(self, folder: Path, token_dtype: npt.DTypeLike) -> None:
        folder.mkdir()
        self.n_documents = 0
        self._dtypes = {"token": token_dtype, "label": np.int32, "id": np.uint8}
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

    def append(self, ids: Sequence[str], tokens: Ragged, labels: Ragged) -> None:
        """Write a batch of documents."""
        encoded = [each.encode() for each in ids]
        id_bytes = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        id_rows = Ragged.from_lengths(id_bytes, np.array([*map(len, encoded)], dtype=np.int64))
        for name, rows in (("token", tokens), ("label", labels), ("id", id_rows)):
            self._files[f"{name}s.bin"].write(rows.values.astype(self._dtypes[name]).tobytes())
            ends = self._ends[name] + rows.offsets[1:]
            self._files[f"{name}_offsets.bin"].write(ends.tobytes())
            self._ends[name] += len(rows.values)
        self.n_documents += len(ids)


def is_prepared(place: Path) -> bool:
    """Return whether a folder is a prepared one."""
    return (place / DESCRIPTION_FILE).is_file()


def _open_ragged(part: Path, name: str, dtype: np.dtype[Any]) -> Ragged:
    offsets = _open_array(part / f"{name}_offsets.bin", np.dtype(np.int64))
    values = _open_array(part / f"{name}s.bin", dtype)
    if not len(offsets) or int(offsets[-1]) != len(values):
        raise DataError(f"{part} is cut short. Prepare the data again.")
    return Ragged(values, offsets)


def _open_array(file: Path, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    try:
        if file.stat().st_size == 0:  # an empty file cannot be mapped
            return np.empty(0, dtype=dtype)
        return np.memmap(file, dtype=dtype, mode="r")
    except (OSError, ValueError) as error:
        raise DataError(f"{file} is missing or cut short. Prepare the data again.") from error


def write_description(folder: Path, description: dict[str, Any]) -> None:
    """Write the description of a prepared folder."""
    text = json.dumps({"format": FORMAT, **description}, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION_FILE).write_text(text, encoding="utf-8")


def smallest_dtype(n_values: int) -> np.dtype[Any]:
    """Return the smallest of our types that can hold ids below `n_values`."""
    return np.dtype(np.uint16 if n_values <= 2**16 else np.int32)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut a stream into lists of at most `size` items."""
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def prefetch(make: Callable[[T], Made], items: Iterable[T], n_ahead: int = 4) -> Iterator[Made]:
    """Yield `make(item)` in order; a thread makes a few ahead while the caller computes."""
    remaining = iter(items)
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(make, item) for item in islice(remaining, n_ahead))
        try:
            while waiting:
                made = waiting.popleft().result()
                waiting.extend(thread.submit(make, item) for item in islice(remaining, 1))
                yield made
        finally:
            for future in waiting:
                future.cancel()


def prepare(
    splits: Mapping[str, Stream],
    target: Path,
    name: str,
    settings: TextSettings,
    source: Mapping[str, Any],
    on_documents: Callable[[str, int], None] = lambda step, n_documents: None,
    count_skipped: Callable[[], Mapping[str, int]] = dict,
    valid_is_cut: bool = False,
) -> Prepared:
    """Write the prepared form of a dataset to `target`, completely or not at all.

    Args:
        splits: a function per split that streams it, any number of times; train is required.
        target: the folder to write.
        name: the name of the dataset.
        settings: how texts become words.
        source: where the data came from, kept in the description.
        on_documents: called with the step and the number of documents processed since the last
            call.
        count_skipped: called at the end; returns the number of skipped rows per split.
        valid_is_cut: whether the valid split was cut from train, kept in the description.

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
    pretrained = None if settings.tokenizer == WORDS else pretrained_encoder(settings)
    label_counts, texts, features = _count(
        splits["train"](), settings, lambda n: on_documents("vocabulary", n)
    )
    encoder = pretrained or TextEncoder(
        learn_tokenizer(texts, features, settings), settings.max_words
    )
    known = LabelVocabulary.from_counts(label_counts)
    label_ids = dict(known.index)  # labels that train lacks are added
    dtype = smallest_dtype(encoder.n_tokens)
    n_documents = {}

    def tokenize(batch: list[Example]) -> tuple[list[Example], list[Encoding]]:
        return batch, encoder.tokenize(
            [example.text for example in batch], partial(name_example, batch)
        )

    with whole_folder(target) as folder:
        for split, stream in splits.items():
            with SplitWriter(folder / split, dtype) as writer:
                for examples, encodings in prefetch(tokenize, batched(stream(), BATCH), n_ahead=2):
                    tokens = encoder.pack(encodings, [example.features for example in examples])
                    ids = [example.id for example in examples]
                    writer.append(ids, tokens, _label_rows(examples, label_ids))
                    on_documents(split, len(examples))
            n_documents[split] = writer.n_documents
        encoder.save(folder / "tokenizer.json")
        known.save(folder / "labels.json")
        description = {
            "name": name,
            "source": dict(source),
            "text": to_dict(settings),
            "n_documents": n_documents,
            "n_skipped_rows": dict(count_skipped()),
            "n_tokens": encoder.n_tokens,
            "n_labels": len(known),
            "unseen_labels": list(label_ids)[len(known) :],
            "token_dtype": dtype.name,
            **({"valid_is_cut": True} if valid_is_cut else {}),
        }
        write_description(folder, description)
    return Prepared(target)


def _count(
    examples: Iterable[Example], settings: TextSettings, on_documents: Callable[[int], None]
) -> tuple[Counter[str], list[str], list[str]]:
    """Return the count of each label, texts for the vocabulary, and the most frequent features.

    The texts are an even sample of the stream, whose length is not known: when the sample is
    full, every second text is dropped, and from then on half as many are taken.
    """
    labels, features, texts = Counter[str](), Counter[str](), list[str]()
    n_seen, stride = 0, 1
    for batch in batched(examples, BATCH):
        labels.update(chain.from_iterable(example.labels for example in batch))
        features.update(chain.from_iterable(example.features for example in batch))
        sample = batch[-n_seen % stride :: stride]
        texts.extend(example.text[: 20 * settings.max_words] for example in sample)
        n_seen += len(batch)
        while len(texts) > settings.vocabulary_documents:
            del texts[1::2]
            stride *= 2
        on_documents(len(batch))
    ranked = sorted(features.items(), key=lambda item: (-item[1], item[0]))
    frequent = [name for name, count in ranked if count >= settings.min_count]
    return labels, texts, frequent[: settings.max_features]


def _label_rows(examples: list[Example], label_ids: dict[str, int]) -> Ragged:
    rows = []
    for example in examples:
        ids = [label_ids.setdefault(label, len(label_ids)) for label in example.labels]
        rows.append(sorted(ids))
    return Ragged.from_lists(rows)
