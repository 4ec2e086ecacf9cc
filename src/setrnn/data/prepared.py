"""The prepared form of a dataset: a memory-mapped folder, which is all that training reads.

    NAME-HASH/
        prepared.json      format, settings, sources, numbers, the size and hash of every file
        tokenizer.json     texts to ids
        labels.json        the labels of train, in descending order of frequency
        train/ valid/ test/ unlabelled/
            tokens.bin  labels.bin  ids.bin  unknowns.bin, each with its offsets, such as
            token_offsets.bin; text_hashes.bin
        word_vectors-HASH.npz   one row per token id, then one per label

The vocabulary is made from train and, if there are any, texts without labels. A label of valid or
test that train lacks has an id after the others: see `unseen_labels`.

A damaged folder is refused before anything is learned from it. Opening it checks the size of every
file and, up to HASHED_BYTES, its hash; opening a split checks that all ids are in range.

`cache` makes the folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from setrnn.config import TextSettings, from_dict, settings_hash
from setrnn.data.disk import seal_file
from setrnn.data.example import Example, Hashes, hash_texts
from setrnn.data.hierarchy import Hierarchy, list_open
from setrnn.data.labels import ALL_OTHERS, LabelVocabulary, distinct_sets, mark_unknown
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import load_text_encoder
from setrnn.data.text.words import TextEncoder
from setrnn.errors import DataError

FORMAT = 7
DESCRIPTION_FILE, HASHES_FILE = "prepared.json", "text_hashes.bin"
HIERARCHY = "hierarchy"
UNLABELLED = "unlabelled"  # a split of texts without labels, for a student
HASHED_BYTES = 1 << 30  # a larger folder is hashed only on request: about a second per GiB
# Documents, and the rows of their tokens, their labels and their unknown labels, if there are any.
EncodedBatch: TypeAlias = tuple[Sequence[Example], Ragged, Ragged, Ragged | None]
AGAIN = "Remove the folder and prepare the data again: setrnn data prepare DATA."


@dataclass(frozen=True)
class PreparedSplit:
    """One split: its tokens, label sets, ids and hashes of texts, memory-mapped."""

    tokens: Ragged
    labels: Ragged
    id_bytes: Ragged
    text_hashes: Hashes  # (n,)
    unknown: Ragged | None = None  # labels that are not known; None if all are

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_complete(self) -> npt.NDArray[np.bool_]:
        """Whether all labels of each document are known: (n,)."""
        if self.unknown is None:
            return np.ones(len(self), dtype=bool)
        return np.asarray(self.unknown.lengths == 0)

    def mark_unknown(
        self, n_labels: int, rows: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.bool_] | None:
        """Mark the unknown labels of all documents, or of `rows`: (n, L); None if all are known."""
        if self.unknown is None:
            return None
        rows = np.arange(len(self)) if rows is None else rows
        return mark_unknown(self.unknown.take(rows), self.labels.take(rows), n_labels)

    def ids(self, start: int, stop: int) -> list[str]:
        """Return the ids of consecutive documents."""
        rows = self.id_bytes.rows(start, stop)
        return [row.tobytes().decode(errors="replace") for row in rows]


class Prepared:
    """An open prepared folder.

    Attributes:
        folder: the folder.
        description: what its `prepared.json` says.
        name: the name of the dataset.
        splits: the names of the splits.
        text_settings: the settings that texts were processed with.
        language_note: the language of the texts, and whether stop words are removed.
        unseen_labels: labels of valid and test that train lacks; their ids follow the others.
        n_skipped_rows: the number of rows that could not be read and were skipped.
        is_synthetic: whether the documents are those of the embedded corpus.
        valid_is_cut: whether the valid split was cut from train because the data had none.

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
        self.description = description = _read_description(folder)
        self._checked: set[str] = set()  # splits whose ids are known to be in range
        n_bytes = sum(seal["bytes"] for seal in description["files"].values())
        hashes_all = n_bytes <= HASHED_BYTES
        self._refuse_damage(hashes_all)
        self.name: str = description["name"]
        self.splits: list[str] = list(description["n_documents"])
        self.text_settings = from_dict(TextSettings, description["text"])
        self.language_note: str = description.get("language", "")
        self.unseen_labels: list[str] = description["unseen_labels"]
        self.n_skipped_rows: int = description.get("n_skipped_rows", 0)
        self.is_synthetic: bool = description.get("synthetic", False)
        self.valid_is_cut: bool = description.get("valid_is_cut", False)

    def check(self) -> None:
        """Raise DataError if any file is not as it was written, however large the folder."""
        self._refuse_damage(True)
        for name in self.splits:
            self.split(name)

    def _refuse_damage(self, hashes_all: bool) -> None:
        """Raise if a file has another size, or another hash: JSON files are always hashed."""
        for name, seal in self.description["files"].items():
            file = self.folder / name
            try:
                is_whole = file.stat().st_size == seal["bytes"]
                if is_whole and (hashes_all or name.endswith(".json")):
                    is_whole = seal_file(file) == seal
            except OSError as error:
                raise _damaged(self.folder, name, f"cannot be read: {error.strerror}") from error
            if not is_whole:
                raise _damaged(self.folder, name)

    @cached_property
    def encoder(self) -> TextEncoder:
        """The tokenizer."""
        return load_text_encoder(self.folder / "tokenizer.json", self.text_settings)

    @cached_property
    def labels(self) -> LabelVocabulary:
        """The labels of train."""
        return LabelVocabulary.load(self.folder / "labels.json")

    @property
    def n_windows(self) -> dict[str, dict[int, int]]:
        """The number of documents of each split by the windows that their whole text fills."""
        found = self.description["n_windows"].items()
        return {split: {int(n): count for n, count in each.items()} for split, each in found}

    @cached_property
    def hierarchy(self) -> Hierarchy | None:
        """The parents of labels; it keeps predictions closed if all label sets of train are."""
        found = Hierarchy.from_dict(self.description.get(HIERARCHY))
        if found is None:
            return None
        label_sets = self.labels.sets(distinct_sets(self.split("train").labels)[0])
        return replace(found, keeps_closed=not list_open(found, label_sets, self.labels.index))

    def seen_sets(self) -> Ragged:
        """Return the distinct label sets of train, of the documents whose labels are all known."""
        train = self.split("train")
        return distinct_sets(train.labels.take(np.flatnonzero(train.is_complete)))[0]

    def split(self, name: str) -> PreparedSplit:
        """Open one split."""
        if name not in self.splits:
            raise DataError(
                f"{self.folder} has no '{name}' part: it holds {', '.join(self.splits)}."
            )
        place, n_tokens = self.folder / name, self.description["n_tokens"]
        rows = {
            kind: Ragged(
                _open_array(place / f"{kind}s.bin", dtype),
                _open_array(place / f"{kind}_offsets.bin", np.int64),
            )
            for kind, dtype in _choose_dtypes(n_tokens).items()
        }
        hashes = _open_array(place / HASHES_FILE, np.uint64)
        if name not in self._checked:
            n_labels, n_documents = self.description["n_labels"], self.description["n_documents"]
            limits = {
                "token": (0, n_tokens),
                "label": (0, n_labels + len(self.unseen_labels)),
                "id": (0, 256),
                "unknown": (ALL_OTHERS, n_labels),
            }
            is_sound = all(rows[kind].is_sound(*limits[kind]) for kind in rows)
            lengths = {len(hashes), *map(len, rows.values())}
            if not is_sound or lengths != {n_documents[name]}:
                raise _damaged(self.folder, name)
            self._checked.add(name)
        unknown = rows["unknown"] if len(rows["unknown"].values) else None
        return PreparedSplit(rows["token"], rows["label"], rows["id"], hashes, unknown)


def write_split(folder: Path, n_tokens: int, batches: Iterable[EncodedBatch]) -> int:
    """Write the files of one split into a new folder; return the number of its documents."""
    folder.mkdir()
    dtypes, n_documents = _choose_dtypes(n_tokens), 0
    ends = dict.fromkeys(dtypes, 0)
    with ExitStack() as stack:
        names = [HASHES_FILE, *(f"{kind}{end}.bin" for kind in dtypes for end in ("s", "_offsets"))]
        files = {name: stack.enter_context((folder / name).open("wb")) for name in names}
        for kind in dtypes:
            files[f"{kind}_offsets.bin"].write(bytes(8))  # the first row begins at 0
        for examples, tokens, labels, unknown in batches:
            rows = {
                "token": tokens,
                "label": labels,
                "id": Ragged.from_lists([each.id.encode() for each in examples], np.uint8),
                "unknown": unknown or Ragged.from_lists([()] * len(examples)),
            }
            for kind, each in rows.items():
                files[f"{kind}s.bin"].write(each.values.astype(dtypes[kind]).tobytes())
                files[f"{kind}_offsets.bin"].write((ends[kind] + each.offsets[1:]).tobytes())
                ends[kind] += len(each.values)
            files[HASHES_FILE].write(hash_texts(each.text for each in examples).tobytes())
            n_documents += len(examples)
    return n_documents


def _choose_dtypes(n_tokens: int) -> dict[str, type[np.generic]]:
    """Return the type of the values of each kind of row."""
    token = np.uint16 if n_tokens <= 2**16 else np.int32
    return {"token": token, "label": np.int32, "id": np.uint8, "unknown": np.int32}


def is_prepared(place: Path) -> bool:
    """Return whether a folder is a prepared one."""
    return (place / DESCRIPTION_FILE).is_file()


def _open_array(file: Path, dtype: type[np.generic]) -> npt.NDArray[Any]:
    if file.stat().st_size == 0:  # an empty file cannot be mapped
        return np.empty(0, dtype=dtype)
    return np.memmap(file, dtype=dtype, mode="r")


def _damaged(folder: Path, name: str, problem: str = "is not as it was written") -> DataError:
    return DataError(f"{folder} is damaged: {name} {problem}. {AGAIN}")


def write_description(folder: Path, description: dict[str, Any]) -> None:
    """Write the description of a prepared folder, with the seals of the files that it holds."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    seals = {file.relative_to(folder).as_posix(): seal_file(file) for file in files}
    values = {"format": FORMAT, **description, "files": seals}
    values["seal"] = settings_hash(values)
    text = json.dumps(values, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION_FILE).write_text(text, encoding="utf-8")


def _read_description(folder: Path) -> dict[str, Any]:
    """Read the description of a prepared folder; refuse another version, and damage."""
    try:
        values = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        is_other = isinstance(values, dict) and values.get("format") != FORMAT
        is_whole = is_other or values.pop("seal") == settings_hash(values)
    except OSError as error:
        raise DataError(f"{folder} is not a prepared folder: {error.strerror}.") from error
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder, DESCRIPTION_FILE) from error
    if is_other:
        raise DataError(
            f"{folder} was prepared by another version of setrnn. Prepare the data again: "
            "setrnn data prepare DATA."
        )
    if not is_whole:
        raise _damaged(folder, DESCRIPTION_FILE)
    return cast(dict[str, Any], values)
