"""The prepared form of a dataset: a memory-mapped folder, which is all that training reads.

    NAME-HASH/
        prepared.json      format, settings, sources, numbers, the size and hash of every file
        tokenizer.json     texts to ids
        labels.json        the labels of train, in descending order of frequency
        train/ valid/ test/ unlabelled/
            tokens.bin  token_offsets.bin  labels.bin  label_offsets.bin  ids.bin  id_offsets.bin
        word_vectors-HASH.npy   one row per token id, then one per label

The vocabulary is made from train and, if there are any, texts without labels. A label of valid or
test that train lacks has an id after the others: see `unseen_labels`.

A damaged folder is refused before anything is learned from it. Opening it checks the size of every
file and, up to HASHED_BYTES, its hash; opening a split checks that all ids are in range.

`prepare` makes the folder in two passes and bounded memory. The first pass over these texts counts
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
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding

from setrnn.config import TextSettings, from_dict, settings_hash, to_dict
from setrnn.data.document_sketch import hash_texts
from setrnn.data.example import Example, name_example
from setrnn.data.folders import whole_folder
from setrnn.data.kept_vectors import check_vectors
from setrnn.data.labels import LabelVocabulary, distinct_sets
from setrnn.data.ragged import Ragged
from setrnn.data.seals import find_damage, seal_folder
from setrnn.data.subwords import load_text_encoder
from setrnn.data.tokenizing import TextEncoder
from setrnn.data.vocabulary import Vocabulary, learn_vocabulary
from setrnn.errors import DataError

FORMAT = 4
DESCRIPTION_FILE = "prepared.json"
UNLABELLED = "unlabelled"  # a split of texts without labels, for a student
BATCH = 4096
HASHED_BYTES = 1 << 30  # a larger folder is hashed only on request: about a second per GiB
TOKEN_DTYPES = ("uint16", "int32")
AGAIN = "Remove the folder and prepare the data again: setrnn data prepare DATA."

Stream = Callable[[], Iterable[Example]]
T = TypeVar("T")
Made = TypeVar("Made")


@dataclass(frozen=True)
class PreparedSplit:
    """One split: its tokens, label sets, ids and hashes of texts, memory-mapped."""

    tokens: Ragged
    labels: Ragged
    id_bytes: Ragged
    text_hashes: Ragged  # one per document, see `document_sketch`

    def __len__(self) -> int:
        return len(self.tokens)

    def is_sound(self, n_documents: int, n_tokens: int, n_labels: int) -> bool:
        """Return whether no offset and no id is out of range."""
        all_rows = (self.tokens, self.labels, self.id_bytes, self.text_hashes)
        return (
            {len(rows) for rows in all_rows} == {n_documents}
            and self.tokens.is_sound(n_tokens)
            and self.labels.is_sound(n_labels)
            and self.labels.holds_sets()
            and self.id_bytes.is_sound(256)
            and bool((self.text_hashes.lengths == 1).all())
        )

    def ids(self, start: int, stop: int) -> list[str]:
        """Return the ids of consecutive documents."""
        rows = self.id_bytes.rows(start, stop)
        return [row.tobytes().decode(errors="replace") for row in rows]


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
        self.description = _read_description(folder)
        self._checked: set[str] = set()  # splits whose ids are known to be in range
        n_bytes = sum(seal["bytes"] for seal in self.description["files"].values())
        self._refuse_damage(lambda name: n_bytes <= HASHED_BYTES or name.endswith(".json"))

    def check(self) -> None:
        """Raise DataError if any file is not as it was written, however large the folder."""
        self._refuse_damage(lambda name: True)
        check_vectors(self.folder)
        for name in self.splits:
            self.split(name)

    def _refuse_damage(self, is_hashed: Callable[[str], bool]) -> None:
        damage = list(find_damage(self.folder, self.description["files"], is_hashed))
        if damage:
            more = f" (and {len(damage) - 1} more files)" if len(damage) > 1 else ""
            raise DataError(f"{self.folder} is damaged: {damage[0]}{more}. {AGAIN}")

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
        encoder = load_text_encoder(self.folder / "tokenizer.json", self.text_settings)
        if encoder.n_tokens != self.description["n_tokens"]:
            raise _damaged(self.folder, "tokenizer.json")
        return encoder

    @cached_property
    def labels(self) -> LabelVocabulary:
        """The labels of train."""
        labels = LabelVocabulary.load(self.folder / "labels.json")
        if len(labels) != self.description["n_labels"]:
            raise _damaged(self.folder, "labels.json")
        return labels

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
        part, known = self.folder / name, self.description
        split = PreparedSplit(
            tokens=_open_ragged(part, "token", known["token_dtype"]),
            labels=_open_ragged(part, "label", "int32"),
            id_bytes=_open_ragged(part, "id", "uint8"),
            text_hashes=_open_ragged(part, "fingerprint", "uint64"),
        )
        if name not in self._checked:
            n_labels = known["n_labels"] + len(known["unseen_labels"])
            if not split.is_sound(known["n_documents"][name], known["n_tokens"], n_labels):
                raise _damaged(self.folder, name)
            self._checked.add(name)
        return split


class SplitWriter:
    """Appends documents to the files of one split; a context manager."""

    def __init__(self, folder: Path, token_dtype: npt.DTypeLike) -> None:
        folder.mkdir()
        self.n_documents = 0
        self._dtypes: dict[str, npt.DTypeLike] = {
            "token": token_dtype,
            "label": np.int32,
            "id": np.uint8,
            "fingerprint": np.uint64,
        }
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

    def append(self, examples: Sequence[Example], tokens: Ragged, labels: Ragged) -> None:
        """Write a batch of documents."""
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


def is_prepared(place: Path) -> bool:
    """Return whether a folder is a prepared one."""
    return (place / DESCRIPTION_FILE).is_file()


def _open_ragged(part: Path, name: str, dtype: str) -> Ragged:
    offsets = _open_array(part / f"{name}_offsets.bin", "int64")
    return Ragged(_open_array(part / f"{name}s.bin", dtype), offsets)


def _open_array(file: Path, dtype: str) -> npt.NDArray[Any]:
    try:
        if file.stat().st_size == 0:  # an empty file cannot be mapped
            return np.empty(0, dtype=dtype)
        return np.memmap(file, dtype=dtype, mode="r")
    except (OSError, ValueError) as error:
        raise _damaged(file.parent.parent, f"{file.parent.name}/{file.name}") from error


def _damaged(folder: Path, name: str) -> DataError:
    return DataError(f"{folder} is damaged: {name} is not as it was written. {AGAIN}")


def write_description(folder: Path, description: dict[str, Any]) -> None:
    """Write the description of a prepared folder, with the seals of the files that it holds."""
    values = {"format": FORMAT, **description, "files": seal_folder(folder)}
    values["seal"] = settings_hash(values)
    text = json.dumps(values, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION_FILE).write_text(text, encoding="utf-8")


def _read_description(folder: Path) -> dict[str, Any]:
    """Read the description of a prepared folder; refuse another version, and damage."""
    try:
        values = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{folder} is not a prepared folder: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(folder, DESCRIPTION_FILE) from error
    if isinstance(values, dict) and values.get("format") != FORMAT:
        raise DataError(
            f"{folder} was prepared by another version of setrnn. Prepare the data again: "
            "setrnn data prepare DATA."
        )
    try:
        if values.pop("seal") != settings_hash(values) or not _is_complete(values):
            raise _damaged(folder, DESCRIPTION_FILE)
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder, DESCRIPTION_FILE) from error
    return cast(dict[str, Any], values)


def _is_complete(values: Mapping[str, Any]) -> bool:
    """Return whether a description has all that is read from it, with the seal of every file."""
    arrays = (
        f"{name}{kind}.bin"
        for name in ("token", "label", "id", "fingerprint")
        for kind in ("s", "_offsets")
    )
    needed = {f"{split}/{name}" for split, name in product(values["n_documents"], arrays)}
    numbers = [values["n_tokens"], values["n_labels"], *values["n_documents"].values()]
    numbers += [seal["bytes"] for seal in values["files"].values()]
    return (
        values["files"].keys() >= {"tokenizer.json", "labels.json", *needed}
        and all(isinstance(number, int) and number >= 0 for number in numbers)
        and values["token_dtype"] in TOKEN_DTYPES
        and isinstance(values["unseen_labels"], list)
        and isinstance(values["text"], dict)
    )


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
    known: Vocabulary | None = None,
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
        known: the vocabulary of a model, to which that of the data is added.

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
    documents = chain.from_iterable(
        splits[name]() for name in ("train", UNLABELLED) if name in splits
    )
    label_counts, texts, features = _count(
        documents, settings, lambda n: on_documents("vocabulary", n)
    )
    extend = learn_vocabulary if known is None else known.extend
    encoder, labels = extend(label_counts, texts, features, settings)
    label_ids = dict(labels.index)  # labels that train lacks are added
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
                    writer.append(examples, tokens, _label_rows(examples, label_ids))
                    on_documents(split, len(examples))
            n_documents[split] = writer.n_documents
        encoder.save(folder / "tokenizer.json")
        labels.save(folder / "labels.json")
        description = {
            "name": name,
            "source": dict(source),
            "text": to_dict(settings),
            "n_documents": n_documents,
            "n_skipped_rows": dict(count_skipped()),
            "n_tokens": encoder.n_tokens,
            "n_labels": len(labels),
            "unseen_labels": list(label_ids)[len(labels) :],
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
