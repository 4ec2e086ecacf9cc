"""Sets within limits that are likely to be probable, for where no candidate is."""

# n documents, K candidates, L labels, P labels to choose from, S labels of the largest set

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from setrnn.metrics import top_labels
from setrnn.systems.candidates import pack_labels, widened
from setrnn.systems.limits import SetLimits

N_SEEN, N_ONLY_SEEN = 8, 16  # sets of training to propose
NEAR_SIZES = np.arange(-2, 3)  # around the size expected


def propose(
    limits: SetLimits,
    label_sets: npt.NDArray[np.int32],
    marginals: npt.NDArray[np.float32],
) -> npt.NDArray[np.int32]:
    """Return sets that fit, (n, G, S): from candidates (n, K, S) and marginals (n, L)."""
    if limits.only_seen and limits.seen is not None:
        return limits.seen.best(_log_odds(marginals), N_ONLY_SEEN)[0]
    found = [likely_sets(limits, marginals), mended(limits, label_sets, marginals)]
    if limits.seen is not None:
        found.append(limits.seen.best(_log_odds(marginals), N_SEEN)[0])
    width = max(each.shape[2] for each in found)
    return np.concatenate([widened(each, width) for each in found], axis=1)


def likely_sets(limits: SetLimits, marginals: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """Take the labels of the largest marginals, in sizes near the one expected: (n, 5, S)."""
    expected = marginals[:, limits.is_allowed].sum(axis=1).round().astype(np.int64)
    # the expected size first
    sizes = expected[:, None] + NEAR_SIZES[np.argsort(np.abs(NEAR_SIZES), kind="stable")]
    sizes = sizes.clip(limits.min_labels, limits.max_labels)
    largest = int(sizes.max(initial=0))
    ranked = top_labels(limits.ranked(marginals), largest)  # (n, S)
    is_in = np.arange(largest) < sizes[:, :, None]
    return pack_labels(np.where(is_in, ranked[:, None], -1).astype(np.int32))


def mended(
    limits: SetLimits,
    label_sets: npt.NDArray[np.int32],
    marginals: npt.NDArray[np.float32],
) -> npt.NDArray[np.int32]:
    """Change sets (n, K, S) as little as makes them fit.

    What is forbidden goes, what is required comes; then the unlikeliest labels go, or the
    likeliest come, until the size fits.
    """
    n, K, S = label_sets.shape
    fill = top_labels(limits.ranked(marginals), limits.min_labels)  # those required among them
    fill = np.broadcast_to(fill[:, None].astype(np.int32), (n, K, limits.min_labels))
    pool = np.concatenate([label_sets, fill], axis=2)  # (n, K, P)
    chance = np.take_along_axis(marginals[:, None], np.maximum(pool, 0), axis=2).astype(np.float64)
    rank = np.where(np.arange(pool.shape[2]) < S, chance + 2, chance)  # its own before others
    rank[~limits.is_allowed[pool] | (pool < 0)] = -np.inf
    is_required = np.isin(pool, limits.required)
    rank[is_required] = 4
    # one that is there already does not come again
    is_own = (fill[..., None] == label_sets[:, :, None]).any(axis=3)
    rank[:, :, S:][is_own] = -np.inf
    order = np.argsort(-rank, axis=2, kind="stable")[:, :, : limits.max_labels]
    rank = np.take_along_axis(rank, order, axis=2)
    is_in = (rank >= 2) | ((np.arange(order.shape[2]) < limits.min_labels) & (rank >= 0))
    return pack_labels(np.where(is_in, np.take_along_axis(pool, order, axis=2), -1))


def _log_odds(marginals: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    chance = marginals.astype(np.float64).clip(1e-6, 1 - 1e-6)
    return np.asarray(np.log(chance) - np.log1p(-chance))
