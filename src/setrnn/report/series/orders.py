"""Which orders of labels a system learned; labels are numbered by falling frequency."""

# n documents with two labels or more, L labels

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import LabelSets

Values = npt.NDArray[np.float64]


def of_two_or_more(sets: LabelSets) -> list[Sequence[int]]:
    """Keep the sets that can be ordered."""
    return [row for row in sets if len(row) > 1]


def companions(truth: LabelSets, n_labels: int, most: int) -> list[int]:
    """Return the labels that share documents with others most often, by falling frequency."""
    n = np.bincount(_flat(of_two_or_more(truth)), minlength=n_labels)
    frequent = np.argsort(-n, kind="stable")[:most]
    return sorted(int(label) for label in frequent if n[label])


def mean_ranks(orders: LabelSets, n_labels: int) -> Values:
    """Average where each label stands, from 0 (first) to 1 (last); NaN for labels never there."""
    orders = of_two_or_more(orders)
    labels = _flat(orders)
    places = [np.linspace(0, 1, len(row)) for row in orders]
    sums = np.bincount(labels, np.concatenate([*places, np.empty(0)]), minlength=n_labels)
    n = np.bincount(labels, minlength=n_labels)
    return np.where(n > 0, sums / np.maximum(n, 1), np.nan)


def frequency_agreement(orders: LabelSets) -> float | None:
    """Return the share of pairs whose more frequent label comes first; None without pairs."""
    by_size: dict[int, list[Sequence[int]]] = {}
    for row in of_two_or_more(orders):
        by_size.setdefault(len(row), []).append(row)
    n_pairs = n_falling = 0
    for size, rows in by_size.items():
        first, second = np.triu_indices(size, 1)
        labels = np.array(rows)
        n_falling += int(np.count_nonzero(labels[:, first] < labels[:, second]))
        n_pairs += len(rows) * len(first)
    return n_falling / n_pairs if n_pairs else None


def _flat(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)
