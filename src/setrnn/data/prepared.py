"""The prepared form of a dataset: a memory-mapped folder, which is all that training reads.

    NAME-HASH/
        prepared.json      format, settings, sources, numbers, the size and hash of every file
        tokenizer.json     texts to ids
        labels.json        the labels of train, in descending order of frequency
        train/ valid/ test/ unlabelled/
            tokens.bin  token_offsets.bin  labels.bin  label_offsets.bin  ids.bin  id_offsets.bin
            unknowns.bin  unknown_offsets.bin   only if some labels are not known: `incomplete`
        word_vectors-HASH.npz   one row per token id, then one per label

The vocabulary is made from train and, if there are any, texts without labels. A label of valid or
test that train lacks has an id after the others: see `unseen_labels`.

A damaged folder is refused before anything is learned from it. Opening it checks the size of every
file and, up to HASHED_BYTES, its hash; opening a split checks that all ids are in range.

`preparing` makes the folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from setrnn.config import TextSettings, from_dict, settings_hash
from setrnn.data.disk import find_damage, seal_folder
from setrnn.data.hierarchy import ClosedCount, Hierarchy, count_closed
from setrnn.data.labels import LabelVocabulary, distinct_sets
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import load_text_encoder
from setrnn.data.text.words import TextEncoder
from setrnn.data.unknown import is_sound, mark_unknown
from setrnn.errors import DataError

FORMAT = 4
DESCRIPTION_FILE = "prepared.json"
HIERARCHY = "hierarchy"
UNKNOWN = "unknown"  # the name of the files of labels that are not known
UNLABELLED = "unlabelled"  # a split of texts without labels, for a student
HASHED_BYTES = 1 << 30  # a larger folder is hashed only on request: about a second per GiB
TOKEN_DTYPES = ("uint16", "int32")
AGAIN = "Remove the folder and prepare the data again: setrnn data prepare DATA."


@dataclass(frozen=True)
class PreparedSplit:
    """One split: its tokens, label sets, ids and hashes of texts, memory-mapped."""

    tokens: Ragged
    labels: Ragged
    id_bytes: Ragged
    text_hashes: Ragged  # one per document, see `document_sketch`
    unknown: Ragged | None = None  # labels that are not known, see `incomplete`; None for none

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

    @property
    def is_complete(self) -> npt.NDArray[np.bool_]:
        """Whether all labels of each document are known: (n,)."""
        if self.unknown is None:
            return np.ones(len(self), dtype=bool)
        return np.asarray(self.unknown.lengths == 0)

    def mark_unknown(
        self, n_labels: int, rows: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.bool_] | None:
        """Mark the labels of documents, or of some, that are not known: (n, L); None for none."""
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
    def language_note(self) -> str:
        """What the language of the texts is, and whether stop words are removed."""
        return str(self.description.get("language", ""))

    @property
    def n_skipped_rows(self) -> int:
        """The number of rows that could not be read and were skipped."""
        return sum(self.description["n_skipped_rows"].values())

    @property
    def n_windows(self) -> dict[str, dict[int, int]]:
        """The number of documents of each split by the windows that their whole text fills."""
        found: dict[str, dict[str, int]] = self.description.get("n_windows", {})
        return {name: {int(n): count for n, count in each.items()} for name, each in found.items()}

    @property
    def unseen_labels(self) -> list[str]:
        """Labels of valid and test that train lacks; their ids follow the others."""
        return list(self.description["unseen_labels"])

    @property
    def valid_is_cut(self) -> bool:
        """Whether the valid split was cut from train because the data had none."""
        return bool(self.description.get("valid_is_cut", False))

    @cached_property
    def hierarchy(self) -> Hierarchy | None:
        """The parents of labels; it keeps predictions closed if all label sets of train are."""
        try:
            found = Hierarchy.from_dict(self.description.get(HIERARCHY))
        except ValueError as error:
            raise _damaged(self.folder, DESCRIPTION_FILE) from error
        return None if found is None else replace(found, keeps_closed=self.count_closed.is_closed)

    @cached_property
    def count_closed(self) -> ClosedCount:
        """How many documents of train have the parents of all their labels."""
        found = Hierarchy.from_dict(self.description.get(HIERARCHY)) or Hierarchy({})
        return count_closed(found, self.split("train").labels, self.labels)

    def seen_sets(self) -> Ragged:
        """Return the distinct label sets of train, of the documents whose labels are all known."""
        train = self.split("train")
        if train.unknown is None:
            return distinct_sets(train.labels)[0]
        return distinct_sets(train.labels.take(np.flatnonzero(train.is_complete)))[0]

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
            unknown=(
                _open_ragged(part, UNKNOWN, "int32")
                if f"{name}/{UNKNOWN}s.bin" in known["files"]
                else None
            ),
        )
        if name not in self._checked:
            n_labels = known["n_labels"] + len(known["unseen_labels"])
            n_documents, unknown = known["n_documents"][name], split.unknown
            if not split.is_sound(n_documents, known["n_tokens"], n_labels) or not (
                unknown is None or is_sound(unknown, n_documents, known["n_labels"])
            ):
                raise _damaged(self.folder, name)
            self._checked.add(name)
        return split


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
