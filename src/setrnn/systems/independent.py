"""The number of labels of a set, if labels are independent: what expected F1 needs."""

# n documents, L labels, M labels that matter to a document, Z sizes

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from setrnn.systems.candidates import Floats, Floats32, Ids

# A label less likely than this, or the 129th, is not in a set of highest expected F1: to raise the
# F1 of a set of k labels, it needs a probability of about F1 (k + 2) / 2 (k + largest size).
LEAST_PROB, MAX_LABELS = 1e-3, 128


def list_likely_labels(probs: Floats | Floats32, also: Sequence[int]) -> Ids:
    """Return the labels that may be in a set of highest expected F1: (n, M), ascending.

    All documents have the same number of them. Those in `also` are included.
    """
    ranked = probs.copy()
    ranked[:, list(also)] = 2.0
    M = int((ranked >= LEAST_PROB).sum(axis=1).max(initial=1))
    M = min(max(M, 1), MAX_LABELS + len(also), probs.shape[1])
    labels = np.argpartition(-ranked, M - 1, axis=1)[:, :M]
    return np.sort(labels, axis=1).astype(np.int32)


def bound_size(expected: Floats, n_labels: int) -> int:
    """Return a size that a set exceeds with probability below 1e-9 (Bernstein's bound)."""
    mean = float(expected.max(initial=0.0))
    return max(1, min(n_labels, int(np.ceil(mean + 6.5 * np.sqrt(mean) + 14))))


def size_probs(probs: Floats, Z: int) -> Floats:
    """Return p(size of the set), for the sizes 0 .. Z: (n, Z + 1)."""
    sizes = np.zeros((len(probs), Z + 1))
    sizes[:, 0] = 1.0
    for label in np.flatnonzero(probs.max(axis=0, initial=0.0) > 1e-12):
        prob = probs[:, label, None]
        longer = sizes[:, :-1] * prob
        sizes *= 1 - prob
        sizes[:, 1:] += longer
    return sizes


def without_label(of_sizes: Floats, probs: Floats) -> Floats:
    """Return p(number of other labels) for each label (n, M), for 0 .. Z - 1: (n, M, Z).

    For a label of probability p, of_sizes[z] = (1 - p) others[z] + p others[z - 1]. This is solved
    upwards for unlikely labels and downwards for likely ones, so that errors do not grow.
    """
    n, M = probs.shape
    Z = of_sizes.shape[1] - 1
    others = np.zeros((Z, n, M))
    likely, unlikely = np.maximum(probs, 0.5), np.minimum(probs, 0.5)
    last = np.zeros((n, M))
    for size in range(Z):
        last = (of_sizes[:, size, None] - unlikely * last) / (1 - unlikely)
        others[size] = last
    is_likely = probs > 0.5
    last = np.zeros((n, M))
    for size in range(Z, 0, -1):
        last = (of_sizes[:, size, None] - (1 - likely) * last) / likely
        np.copyto(others[size - 1], last, where=is_likely)
    return np.maximum(np.moveaxis(others, 0, 2), 0.0)


def size_probs_of_missing(excess: Floats, mass: Floats) -> Floats:
    """Return p(label in the set, size of the set) over sets that a search missed: (n, M, Z).

    Only the sums over the sizes are known. The sizes are those of sets of independent labels.

    Args:
        excess: p(label in the set, and the set was missed), (n, M).
        mass: the total probability of the sets that were missed, (n,).
    """
    chosen = np.minimum(excess / np.maximum(mass, 1e-12)[:, None], 1 - 1e-9)
    of_sizes = size_probs(chosen, bound_size(chosen.sum(axis=1), chosen.shape[1]))
    return np.asarray(excess[:, :, None] * without_label(of_sizes, chosen))
