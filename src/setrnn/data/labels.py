"""The labels of a model, and the labels of documents that are not all known.

A row of unknown labels holds their ids in ascending order. The row of a document that is not
complete holds only ALL_OTHERS: every label that is not given is unknown.
"""

# n documents, L labels

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setrnn.data.ragged import Ragged
from setrnn.errors import ModelError

if TYPE_CHECKING:
    from setrnn.data.example import Example
    from setrnn.data.prepared import PreparedSplit

MOST_LABELS = 1_000_000  # of a list that is read
ALL_OTHERS = -1
ESTIMATED = -1.0  # a setting: the share of forgotten labels is estimated

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LabelVocabulary:
    """The labels of the training data, most frequent first; those added later are last.

    Ties are in alphabetical order.

    Example:
        >>> labels = LabelVocabulary.from_counts({"sport": 2, "markets": 5, "economy": 2})
        >>> labels.names
        ('markets', 'economy', 'sport')
        >>> labels.encode([["sport", "markets"], ["unheard-of"]]).padded().tolist()
        [[0, 2], [-1, -1]]
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> LabelVocabulary:
        """Order labels by their counts."""
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls(tuple(name for name, _ in ranked), tuple(count for _, count in ranked))

    def extend(self, counts: Mapping[str, int], keeps_counts: bool) -> LabelVocabulary:
        """Add the labels of documents after those that are there, which keep their ids.

        With `keeps_counts`, these documents are added to those counted before.

        Example:
            >>> labels = LabelVocabulary(("markets", "economy"), (5, 2))
            >>> labels.extend({"sport": 3, "economy": 1}, keeps_counts=True)
            LabelVocabulary(names=('markets', 'economy', 'sport'), counts=(5, 3, 3))
        """
        before = self.counts if keeps_counts else (0,) * len(self)
        own = [n + counts.get(name, 0) for name, n in zip(self.names, before, strict=True)]
        new = LabelVocabulary.from_counts(
            {name: n for name, n in counts.items() if name not in self.index}
        )
        return LabelVocabulary((*self.names, *new.names), (*own, *new.counts))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> dict[str, int]:
        """The id of each label."""
        return {name: index for index, name in enumerate(self.names)}

    def sets(self, rows: Iterable[Iterable[int]]) -> list[tuple[str, ...]]:
        """Return the names of each row of ids."""
        return [tuple(self.names[label] for label in row) for row in rows]

    def encode(self, label_sets: Sequence[Iterable[str]]) -> Ragged:
        """Return the ids of each set in ascending order; unknown labels are left out."""
        index = self.index
        rows = [sorted({index[name] for name in row if name in index}) for row in label_sets]
        return Ragged.from_lists(rows)

    def save(self, file: Path) -> None:
        """Write the names and counts as JSON."""
        values = {"labels": list(self.names), "counts": [int(count) for count in self.counts]}
        file.write_text(json.dumps(values, ensure_ascii=False, indent=0), encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> LabelVocabulary:
        """Read the names and counts."""
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            names, counts = values["labels"], values["counts"]
            is_sound = (
                isinstance(names, list)
                and len(names) <= MOST_LABELS
                and all(isinstance(name, str) for name in names)
                and len(set(names)) == len(names) == len(counts)
                and all(type(count) is int for count in counts)
            )
            if not is_sound:
                raise ValueError("labels and counts do not fit")
            "".join(names).encode()  # half a surrogate pair could never be written
            return cls(tuple(names), tuple(counts))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelError(f"{file} is not a list of labels, or is cut short.") from error


def distinct_sets(label_sets: Ragged) -> tuple[Ragged, np.ndarray]:
    """Return the distinct label sets, in order of first appearance, and their counts."""
    counts = Counter(tuple(row.tolist()) for row in label_sets)
    return Ragged.from_lists(list(counts)), np.fromiter(counts.values(), dtype=np.int64)


def encode_unknown(examples: Sequence[Example], label_ids: Mapping[str, int]) -> Ragged | None:
    """Return the unknown labels of documents; None if all are known. Other labels are left out."""
    if not any(example.is_incomplete for example in examples):
        return None
    rows = [
        sorted(label_ids[name] for name in example.unknown if name in label_ids)
        if example.complete
        else [ALL_OTHERS]
        for example in examples
    ]
    return Ragged.from_lists(rows)


def mark_unknown(unknown: Ragged, labels: Ragged, n_labels: int) -> Bools:
    """Mark the labels of each document that are not known: (n, L).

    Example: of three labels, the first document has label 0, and label 2 is not known. Of the
    second, only label 1 is known.

        >>> unknown, labels = Ragged.from_lists([[2], [-1]]), Ragged.from_lists([[0], [1]])
        >>> mark_unknown(unknown, labels, 3).astype(int).tolist()
        [[0, 0, 1], [1, 0, 1]]
    """
    marks = np.zeros((len(unknown), n_labels), dtype=bool)
    documents, values = unknown.row_numbers, np.asarray(unknown.values)
    is_all = values == ALL_OTHERS
    marks[documents[is_all]] = True
    marks[documents[~is_all], values[~is_all]] = True
    is_model = np.asarray(labels.values) < n_labels  # test may have labels that train lacks
    marks[labels.row_numbers[is_model], np.asarray(labels.values)[is_model]] = False
    return marks


def mark_only_given(unknown: Ragged) -> Bools:
    """Mark the documents of which only the labels that are given are known: (n,)."""
    found = np.zeros(len(unknown), dtype=bool)
    found[unknown.row_numbers[np.asarray(unknown.values) == ALL_OTHERS]] = True
    return found


@dataclass(frozen=True)
class Incomplete:
    """What training has to know of documents whose labels are not all known.

    A set that agrees with what is known has the weight 1 if it adds only labels of `unknown`
    lists. Each label that it adds to a document that is not complete multiplies its weight by the
    share of labels that are forgotten: 0 means that labels that are not given are absent, 1 that
    they count neither for nor against.
    """

    unknown: Ragged
    labels: Ragged
    n_labels: int
    forgotten: float

    @classmethod
    def of(cls, split: PreparedSplit, n_labels: int, forgotten: float) -> Incomplete | None:
        """Return what training has to know of a split; None if all its labels are known."""
        if split.unknown is None:
            return None
        share = estimate_forgotten(split) if forgotten == ESTIMATED else forgotten
        if share:
            return cls(split.unknown, split.labels, n_labels, share)
        unknown = split.unknown.keep(np.asarray(split.unknown.values) != ALL_OTHERS)
        return cls(unknown, split.labels, n_labels, share) if len(unknown.values) else None

    def __len__(self) -> int:
        return len(self.unknown)

    def rows(self, rows: npt.NDArray[np.int64]) -> Incomplete:
        """Return the same for some of the documents."""
        unknown, labels = self.unknown.take(rows), self.labels.take(rows)
        return Incomplete(unknown, labels, self.n_labels, self.forgotten)

    @property
    def is_complete(self) -> Bools:
        """Whether all labels of a document are known: (n,)."""
        return np.asarray(self.unknown.lengths == 0)

    def log_weights(self) -> npt.NDArray[np.float32]:
        """Return the log of what each label multiplies the weight of a set by: (n, L).

        It is 0 for labels that are given or unknown, and -inf for absent ones.
        """
        weights = self.open_weights(slice(0, self.n_labels))
        weights[self.labels.row_numbers, self.labels.values] = 0
        return weights

    def open_weights(self, labels: slice) -> npt.NDArray[np.float32]:
        """Return the log weights of some labels, with -inf for given labels too."""
        with np.errstate(divide="ignore"):
            log_forgotten = np.float32(np.log(np.float64(self.forgotten)))
        weights = np.full((len(self), labels.stop - labels.start), -np.inf, dtype=np.float32)
        weights[mark_only_given(self.unknown)] = log_forgotten
        for rows, value in ((self.unknown, 0.0), (self.labels, -np.inf)):
            ids = np.asarray(rows.values)
            is_own = (ids >= labels.start) & (ids < labels.stop)
            weights[rows.row_numbers[is_own], ids[is_own] - labels.start] = value
        return weights


def estimate_forgotten(split: PreparedSplit) -> float:
    """Return the share of labels that documents that are not complete lack, by their mean number.

    Complete documents are taken to have as many labels as the others have in truth. Without
    complete documents nothing is known of the share, and it is 0.

    Example: complete documents have two labels, the others one.

        >>> from types import SimpleNamespace
        >>> unknown = Ragged.from_lists([[], [-1], [-1]])
        >>> labels = Ragged.from_lists([[0, 1], [0], [2]])
        >>> estimate_forgotten(SimpleNamespace(unknown=unknown, labels=labels))
        0.5
    """
    if split.unknown is None:
        return 0.0
    is_all = mark_only_given(split.unknown)
    is_complete, sizes = split.unknown.lengths == 0, split.labels.lengths
    if not is_complete.any() or not is_all.any() or not sizes[is_complete].any():
        return 0.0
    return float(np.clip(1 - sizes[is_all].mean() / sizes[is_complete].mean(), 0, 1))
