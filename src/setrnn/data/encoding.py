"""The second pass over documents: turn them into ids, and write the files of a split.

Pieces of a split may be written by several processes, and joined: the files are the same.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding

from setrnn.data.document_sketch import hash_texts
from setrnn.data.example import Example, name_example
from setrnn.data.incomplete import encode_unknown
from setrnn.data.ragged import Ragged
from setrnn.data.streaming import batched, prefetch
from setrnn.data.tokenizing import TextEncoder

BATCH = 4096
UNKNOWN = "unknown"  # the name of the files of labels that are not known
_CHUNK = 1 << 20


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

    def append_piece(self, folder: Path, label_ids: npt.NDArray[np.int32]) -> None:
        """Write the documents of a piece: the folder of another writer.

        Args:
            folder: the folder of the piece.
            label_ids: the id here of each label id there.
        """
        ends = np.fromfile(folder / "label_offsets.bin", dtype=np.int64)
        self._append_unknown(len(ends) - 1, _read_unknown(folder))
        for name, dtype in self._dtypes.items():
            ends = np.fromfile(folder / f"{name}_offsets.bin", dtype=np.int64)
            self._files[f"{name}_offsets.bin"].write((self._ends[name] + ends[1:]).tobytes())
            self._ends[name] += int(ends[-1])
            values = self._files[f"{name}s.bin"]
            if name == "label" and (label_ids != np.arange(len(label_ids))).any():
                there = np.fromfile(folder / "labels.bin", dtype=dtype)
                values.write(_sort_rows(label_ids[there], ends).tobytes())
                continue
            with (folder / f"{name}s.bin").open("rb") as piece:
                shutil.copyfileobj(piece, values, _CHUNK)
        self.n_documents += len(ends) - 1

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


def _read_unknown(folder: Path) -> Ragged | None:
    if not (folder / f"{UNKNOWN}s.bin").is_file():
        return None
    values = np.fromfile(folder / f"{UNKNOWN}s.bin", dtype=np.int32)
    return Ragged(values, np.fromfile(folder / f"{UNKNOWN}_offsets.bin", dtype=np.int64))


def _sort_rows(
    values: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return values[np.lexsort((values, rows))]


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
