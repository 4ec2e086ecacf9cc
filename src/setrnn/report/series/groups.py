"""Labels by how frequent they are, documents by how many labels they have."""

# R runs, L labels, n documents, G groups

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import LabelSets

Values = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

BASES = (2, 4, 10)
MOST_BINS, MOST_SIZES = 8, 10
LEAST_SHARE = 0.01  # of the documents, for a set size to stand by itself
NEVER = -1  # the bin of labels that train never had


@dataclass(frozen=True)
class FrequencyBins:
    """Bin b holds the labels that train has base^b times or more, below base^(b + 1)."""

    base: int
    of_label: Counts  # (L,)

    @property
    def bins(self) -> Counts:
        """The bins that hold labels, rising."""
        return np.unique(self.of_label)


@dataclass(frozen=True)
class SizeGroups:
    """Documents by set size; the last group holds larger sets too."""

    of_document: Counts  # (n,)
    sizes: Counts  # (G,) that occur, rising
    is_open: bool  # whether the last holds larger sets

    @property
    def names(self) -> list[str]:
        """What each group is called."""
        names = [str(size) for size in self.sizes]
        return [*names[:-1], names[-1] + "+"] if self.is_open else names


def frequency_bins(label_counts: Sequence[int], most: int = MOST_BINS) -> FrequencyBins:
    """Sort labels into bins of equal width in the logarithm, in the finest way that is readable."""
    counts = np.asarray(label_counts, dtype=np.int64)
    for base in BASES:
        powers = [1]
        while powers[-1] * base <= counts.max(initial=1):
            powers.append(powers[-1] * base)
        of_label = np.searchsorted(powers, counts, side="right") - 1  # 0 times: NEVER
        seen = of_label[of_label != NEVER]
        if len(seen) == 0 or seen.max() - seen.min() < most:
            break
    return FrequencyBins(base, of_label.astype(np.int64))


def size_groups(truth: LabelSets, most: int = MOST_SIZES) -> SizeGroups:
    """Sort documents by how many true labels they have, the few largest together."""
    sizes = np.array([len(row) for row in truth], dtype=np.int64)
    least = max(2, LEAST_SHARE * len(sizes))
    at_least = np.cumsum(np.bincount(sizes)[::-1])[::-1]  # how many have this size or more
    largest = min(int(np.flatnonzero(at_least >= min(least, len(sizes))).max()), most - 1)
    grouped = np.minimum(sizes, largest)
    return SizeGroups(grouped, np.unique(grouped), bool(sizes.max() > largest))


def group_means(values: Values, of: Counts) -> tuple[Values, Counts]:
    """Average over runs (R, L), then within each group that has members: (G,), and its size."""
    _, place, n = np.unique(of, return_inverse=True, return_counts=True)
    sums = np.bincount(place, weights=values.mean(axis=0))
    return sums / n, n.astype(np.int64)
