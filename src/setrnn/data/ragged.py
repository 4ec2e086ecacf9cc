"""Rows of different lengths in two flat arrays: how documents and label sets are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Ragged:
    """Row i is `values[offsets[i]:offsets[i + 1]]`; the arrays may be memory-mapped."""

    values: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[int]], dtype: npt.DTypeLike = np.int32) -> Ragged:
        """Pack lists of ids."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        values = np.fromiter(chain.from_iterable(rows), dtype=dtype, count=int(lengths.sum()))
        return cls.from_lengths(values, lengths)

    @classmethod
    def from_lengths(cls, values: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> Ragged:
        """Cut flat values into rows of these lengths."""
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(values, offsets)

    @classmethod
    def concatenate(cls, parts: Iterable[Ragged]) -> Ragged:
        """Put the rows of several behind each other."""
        parts = list(parts)
        if not parts:
            return cls.from_lists([])
        return cls.from_lengths(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The length of each row."""
        return np.diff(self.offsets)

    @property
    def row_numbers(self) -> npt.NDArray[np.int64]:
        """The row each value stands in."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    def rows(self, start: int, stop: int) -> Ragged:
        """Return a stretch of rows, without copying their values."""
        offsets = np.asarray(self.offsets[start : stop + 1])
        return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])

    def keep(self, is_kept: npt.NDArray[np.bool_]) -> Ragged:
        """Drop values from their rows."""
        n_kept_before = np.zeros(len(is_kept) + 1, dtype=np.int64)
        np.cumsum(is_kept, out=n_kept_before[1:])
        return Ragged(self.values[is_kept], n_kept_before[self.offsets])

    def truncate(self, length: int) -> Ragged:
        """Keep at most the first `length` values of each row."""
        if not len(self) or self.lengths.max() <= length:
            return self
        position = np.arange(len(self.values)) - np.repeat(self.offsets[:-1], self.lengths)
        return self.keep(position < length)

    def append(self, other: Ragged) -> Ragged:
        """Put each row of `other` behind the same row of this."""
        lengths = self.lengths + other.lengths
        result = Ragged.from_lengths(np.empty(int(lengths.sum()), dtype=self.values.dtype), lengths)
        is_own = np.zeros(len(result.values) + 1, dtype=np.int8)
        # +1 where a row of ours starts, -1 where the other's does
        np.add.at(is_own, result.offsets[:-1], 1)
        np.add.at(is_own, result.offsets[:-1] + self.lengths, -1)
        mask = np.cumsum(is_own[:-1]) > 0
        result.values[mask] = self.values
        result.values[~mask] = other.values
        return result
