"""The prepared form of a dataset: memory-mapped, and all that training reads.

    NAME-HASH/
        prepared.json      format, settings, sources, sizes
        tokenizer.json     texts to ids
        labels.json        the labels of train, by falling frequency
        train/ valid/ test/
            tokens.bin  token_offsets.bin  labels.bin  label_offsets.bin  ids.bin  id_offsets.bin
        word_vectors-HASH.npy   a row for each token id, then one for each label

A label that train never had keeps an id, after the others: `unseen_labels` names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from setrnn.config import TextSettings, from_dict
from setrnn.data.labels import LabelVocabulary, distinct_sets
from setrnn.data.ragged import Ragged
from setrnn.data.subwords import load_text_encoder
from setrnn.data.tokenizing import TextEncoder
from setrnn.errors import DataError

FORMAT = 1
DESCRIPTION_FILE = "prepared.json"
_KEYS = {"n_documents", "token_dtype"}


@dataclass(frozen=True)
class PreparedSplit:
    """One split: its tokens, label sets and ids, all memory-mapped."""

    tokens: Ragged
    labels: Ragged
    id_bytes: Ragged

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self, start: int, stop: int) -> list[str]:
        """Return the ids of a stretch of documents."""
        return [row.tobytes().decode() for row in self.id_bytes.rows(start, stop)]


class Prepared:
    """A prepared folder, opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.description: dict[str, Any] = json.loads(
                (folder / DESCRIPTION_FILE).read_text(encoding="utf-8")
            )
        except (OSError, ValueError) as error:
            raise DataError(f"{folder} is not a prepared folder, or is cut short.") from error
        if not isinstance(self.description, dict):
            raise DataError(f"{folder / DESCRIPTION_FILE} is damaged. Prepare the data again.")
        if self.description.get("format") != FORMAT:
            raise DataError(
                f"{folder} was prepared by another version of setrnn. Prepare the data again."
            )
        if _KEYS - set(self.description):
            raise DataError(f"{folder / DESCRIPTION_FILE} is damaged. Prepare the data again.")
        missing = [
            name for name in ("tokenizer.json", "labels.json") if not (folder / name).is_file()
        ]
        if missing:
            raise DataError(f"{folder} lacks {missing[0]}. Prepare the data again.")

    @property
    def name(self) -> str:
        """The name of the dataset it was made from."""
        return str(self.description["name"])

    @property
    def splits(self) -> list[str]:
        """The names of its splits."""
        return list(self.description["n_documents"])

    @cached_property
    def text_settings(self) -> TextSettings:
        """How texts were processed."""
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
        """How many rows could not be read and were passed over."""
        return sum(self.description["n_skipped_rows"].values())

    @property
    def unseen_labels(self) -> list[str]:
        """Labels of valid and test that train never had; their ids follow the others."""
        return list(self.description["unseen_labels"])

    @property
    def valid_is_cut(self) -> bool:
        """Whether its valid split was cut from train, as the data had none."""
        return bool(self.description.get("valid_is_cut", False))

    def seen_sets(self) -> Ragged:
        """Return the different label sets of train."""
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
        self.folder = folder
        self.n_documents = 0
        self.token_dtype = np.dtype(token_dtype)
        self._stack = ExitStack()
        self._files: dict[str, BinaryIO] = {}
        self._ends: dict[str, int] = {}

    def __enter__(self) -> SplitWriter:
        for name in ("token", "label", "id"):
            for kind in (f"{name}s.bin", f"{name}_offsets.bin"):
                self._files[kind] = self._stack.enter_context((self.folder / kind).open("wb"))
            self._ends[name] = 0
            self._files[f"{name}_offsets.bin"].write(np.zeros(1, dtype=np.int64).tobytes())
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def append(self, ids: Sequence[str], tokens: Ragged, labels: Ragged) -> None:
        """Write a batch of documents."""
        encoded = [each.encode() for each in ids]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        self._write("token", tokens.values.astype(self.token_dtype), tokens.lengths)
        self._write("label", labels.values.astype(np.int32), labels.lengths)
        self._write("id", np.frombuffer(b"".join(encoded), dtype=np.uint8), lengths)
        self.n_documents += len(ids)

    def _write(self, name: str, values: npt.NDArray[Any], lengths: npt.NDArray[np.int64]) -> None:
        self._files[f"{name}s.bin"].write(values.tobytes())
        ends = self._ends[name] + np.cumsum(lengths)
        self._files[f"{name}_offsets.bin"].write(ends.astype(np.int64).tobytes())
        if len(ends):
            self._ends[name] = int(ends[-1])


def is_prepared(place: Path) -> bool:
    """Tell whether a folder is a prepared one."""
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
    """Write what a prepared folder holds."""
    text = json.dumps({"format": FORMAT, **description}, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION_FILE).write_text(text, encoding="utf-8")


def smallest_dtype(n_values: int) -> np.dtype[Any]:
    """Return the smallest type that holds ids below `n_values`."""
    return np.dtype(np.uint16 if n_values <= 2**16 else np.int32)


def batched(items: Iterable[Any], size: int) -> Iterable[list[Any]]:
    """Cut a stream into lists."""
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
