"""The labels of a model: most frequent first, those added later last."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.errors import ModelError

MOST_LABELS = 1_000_000  # of a list that is read


@dataclass(frozen=True)
class LabelVocabulary:
    """The labels of the training data, most frequent first; ties in alphabetical order.

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
