"""The labels a model knows, by falling frequency."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.errors import ModelError, nearest_name


@dataclass(frozen=True)
class LabelVocabulary:
    """The labels seen in training, most frequent first; ties in alphabetical order."""

    names: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> LabelVocabulary:
        """Order labels by how often they occur."""
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls(tuple(name for name, _ in ranked), tuple(count for _, count in ranked))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> dict[str, int]:
        """The id of each label."""
        return {name: index for index, name in enumerate(self.names)}

    def sets(self, rows: Iterable[Iterable[int]]) -> list[tuple[str, ...]]:
        """Name the labels of each row of ids."""
        return [tuple(self.names[label] for label in row) for row in rows]

    def encode(self, label_sets: Sequence[Iterable[str]]) -> Ragged:
        """Return the ids of each set, ascending; labels that are not known are left out."""
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
                and all(isinstance(name, str) for name in names)
                and len(set(names)) == len(names) == len(counts)
            )
            if not is_sound:
                raise ValueError("labels and counts do not fit")
            return cls(tuple(names), tuple(counts))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{file} is not a list of labels, or is cut short.") from error


def problem_with_known(
    labels: LabelVocabulary,
    present: Collection[str],
    absent: Collection[str],
    max_labels: int | None = None,
) -> str | None:
    """Say what is wrong with labels known to be right and wrong, and the way out, if anything."""
    for name in (*present, *absent):
        if name not in labels.index:
            nearest = nearest_name(name, labels.names) if isinstance(name, str) else ""
            advice = nearest if nearest.startswith("Did") else "Its labels.json lists those it has."
            return f"the model has no label {reprlib.repr(name)}. {advice}"
    both = [name for name in present if name in absent]
    if both:
        return f"{reprlib.repr(both[0])} is both present and absent. Remove it from one."
    if max_labels is not None and len(set(present)) > max_labels:
        return (
            f"{len(set(present))} labels are present, but the model's sets have at most "
            f"{max_labels}. Give fewer, or train with a larger model.max_labels."
        )
    return None


def distinct_sets(label_sets: Ragged) -> tuple[Ragged, np.ndarray]:
    """Return the different label sets, in order of first appearance, and their counts."""
    counts: dict[bytes, int] = {}
    for row in label_sets:
        key = np.asarray(row, dtype=np.int32).tobytes()
        counts[key] = counts.get(key, 0) + 1
    rows = [np.frombuffer(key, dtype=np.int32).tolist() for key in counts]
    return Ragged.from_lists(rows), np.fromiter(counts.values(), dtype=np.int64)
