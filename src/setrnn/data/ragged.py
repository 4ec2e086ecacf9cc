"""Rows of different lengths in two flat arrays: documents and label sets are stored so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

CHECKED_AT_ONCE = 1 << 22  # values or rows; a memory-mapped array is read in such pieces


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths: row i is `values[offsets[i]:offsets[i + 1]]`.

    The arrays may be memory-mapped.

    Example:
        >>> rows = Ragged.from_lists([[3, 1], [], [2]])
        >>> len(rows), rows[0].tolist(), rows.lengths.tolist()
        (3, [3, 1], [2, 0, 1])
        >>> rows.padded().tolist()
        [[3, 1], [-1, -1], [2, -1]]
    """

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
        """Join the rows of several arrays, one array after the other."""
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
        """The row of each value."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def check_ids(self, n_ids: int) -> None:
        """Raise ValueError if the offsets do not fit, or a value is not an id below `n_ids`."""
        if not self.is_sound(0, n_ids):
            raise ValueError(f"rows of ids do not fit, or hold ids that are not below {n_ids:,}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    def rows(self, start: int, stop: int) -> Ragged:
        """Return the rows from `start` to `stop`, without copying their values."""
        offsets = np.asarray(self.offsets[start : stop + 1])
        return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])

    def spans(self, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Ragged:
        """Return a copy of some spans of the values: one row per start and length."""
        shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return Ragged.from_lengths(self.values[np.arange(len(shift)) + shift], lengths)

    def take(self, rows: npt.NDArray[np.int64]) -> Ragged:
        """Return a copy of some rows, in memory."""
        starts, stops = np.asarray(self.offsets[rows]), np.asarray(self.offsets[rows + 1])
        return self.spans(starts, stops - starts)

    def is_sound(self, least: int, end: int) -> bool:
        """Return whether the rows cover the values, and these are at least `least`, below `end`.

        Unsound rows would be read from other places of the memory.
        """
        offsets, values = self.offsets, self.values
        if offsets.ndim != 1 or values.ndim != 1:
            return False
        if offsets.dtype != np.int64 or values.dtype.kind not in "iu":
            return False
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(values):
            return False
        for start in range(0, len(self), CHECKED_AT_ONCE):
            if (np.diff(offsets[start : start + CHECKED_AT_ONCE + 1]) < 0).any():
                return False
        for start in range(0, len(values), CHECKED_AT_ONCE):
            piece = values[start : start + CHECKED_AT_ONCE]
            if piece.min() < least or piece.max() >= end:
                return False
        return True

    def keep(self, is_kept: npt.NDArray[np.bool_]) -> Ragged:
        """Drop the values that are not kept from their rows."""
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
        """Append each row of `other` to the same row of this array."""
        ends = np.repeat(self.offsets[1:], other.lengths)
        return Ragged(np.insert(self.values, ends, other.values), self.offsets + other.offsets)

    def padded(
        self,
        fill: int = -1,
        *,
        rows: npt.NDArray[np.int64] | None = None,
        min_width: int = 0,
        dtype: npt.DTypeLike = np.int32,
    ) -> npt.NDArray[Any]:
        """Return rows as a matrix, padded with `fill` at the end.

        Args:
            fill: the value of the padding.
            rows: the rows to return; all if not given.
            min_width: the least number of columns.
            dtype: the type of the matrix.
        """
        offsets = np.asarray(self.offsets)
        starts, stops = (
            (offsets[:-1], offsets[1:]) if rows is None else (offsets[rows], offsets[rows + 1])
        )
        width = max(int((stops - starts).max(initial=0)), min_width)
        matrix = np.full((len(starts), width), fill, dtype=dtype)
        positions = starts[:, None] + np.arange(width)
        is_filled = positions < stops[:, None]
        matrix[is_filled] = self.values[positions[is_filled]]
        return matrix


def even_rows(n_rows: int, n_taken: int) -> npt.NDArray[np.int64]:
    """Return evenly spaced rows, in ascending order; all of them if there are no more.

    Example:
        >>> even_rows(9, 3).tolist(), even_rows(2, 3).tolist()
        ([0, 4, 8], [0, 1])
    """
    spaced = np.linspace(0, n_rows - 1, min(n_taken, n_rows))
    rows: npt.NDArray[np.int64] = spaced.round().astype(np.int64)
    return rows
