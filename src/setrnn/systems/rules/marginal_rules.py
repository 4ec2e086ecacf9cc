"""Rules `hamming`, `micro-f1` and `label-f1`: the labels whose marginals pass a threshold.

Such a set is the one of the largest sum of p(label) - threshold over its labels: within limits,
it is the largest among the sets that fit.
"""

# n documents, L labels, S labels of the largest set

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.errors import ConfigError
from setrnn.systems.candidates import listed
from setrnn.systems.limits import SetLimits
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.thresholds import Thresholds

OVER_HALF = np.nextafter(0.5, 1.0)


def choose_over_half(choice: Choice) -> npt.NDArray[np.int32]:
    """Take the labels more likely than not: the least expected hamming loss."""
    return best_by_margin(choice.marginals - OVER_HALF, choice.limits)


def choose_by_common_threshold(choice: Choice) -> npt.NDArray[np.int32]:
    """Take the labels above the threshold of best micro-F1."""
    return best_by_margin(choice.marginals - _thresholds(choice).common, choice.limits)


def choose_by_own_thresholds(choice: Choice) -> npt.NDArray[np.int32]:
    """Take the labels above their own thresholds of best label-F1."""
    return best_by_margin(choice.marginals - _thresholds(choice).by_label, choice.limits)


def best_by_margin(margins: npt.NDArray[Any], limits: SetLimits) -> npt.NDArray[np.int32]:
    """Return the set (n, S) of the largest summed margins (n, L) among those that fit."""
    if limits.is_open:
        return listed(margins >= 0)
    if limits.only_seen and limits.seen is not None:
        return limits.seen.best(margins, 1)[0][:, 0]
    ranked = limits.ranked(margins)
    n_wanted = np.clip((ranked >= 0).sum(axis=1), limits.min_labels, limits.max_labels)
    return listed(_is_among_first(ranked, n_wanted))


def _is_among_first(
    values: npt.NDArray[Any], n_wanted: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Mark the largest values of each row, so many as wanted."""
    order = np.argsort(-values, axis=1, kind="stable")
    is_wanted = np.arange(values.shape[1]) < n_wanted[:, None]
    is_chosen = np.zeros(values.shape, dtype=bool)
    np.put_along_axis(is_chosen, order, is_wanted, axis=1)
    return is_chosen


def _thresholds(choice: Choice) -> Thresholds:
    if choice.thresholds is None:
        raise ConfigError(NO_THRESHOLDS.format(rule="micro-f1' or 'label-f1"))
    return choice.thresholds


NO_THRESHOLDS = (
    "Rule '{rule}' needs thresholds, and this model has none. Choose them on documents whose "
    "labels are known: setrnn calibrate MODEL VALID"
)
