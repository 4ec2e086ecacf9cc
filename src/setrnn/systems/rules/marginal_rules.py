"""Rules `hamming`, `micro-f1` and `label-f1`: the labels whose marginals reach a threshold.

This set has the largest sum of p(label) - threshold over its labels. Under limits, the set with
the largest sum is chosen among those that fit.
"""

# n documents, L labels, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    Ints,
    list_columns,
    sum_over_sets,
)
from setrnn.systems.closure import close_sets
from setrnn.systems.limits import SetLimits
from setrnn.systems.rules.choice import Choice
from setrnn.systems.true_marginals import TrueMarginals

OVER_HALF = np.nextafter(0.5, 1.0)
# Chosen by fitting on one half of valid and measuring on the other: docs/rules.md.
EXPECTED_WEIGHT = 0.5
PAIRS_AT_ONCE = 2**20  # of documents and labels
NO_THRESHOLDS = (
    "Rule '{rule}' needs thresholds, and this model has none. Choose them on documents with true "
    "labels: setrnn calibrate MODEL VALID"
)


@dataclass(frozen=True)
class Thresholds:
    """Thresholds on p(label | document): a label is predicted if it reaches its threshold."""

    common: float  # with the best micro-F1
    by_label: Floats  # (L,) with the best F1 of each label


# Returns the threshold of each label, (L,), or one for all.
FindThreshold = Callable[[Choice], npt.NDArray[Any] | float]


def at_half(choice: Choice) -> float:
    """Return the threshold of the least expected hamming loss."""
    return float(OVER_HALF)


def at_common(choice: Choice) -> float:
    """Return the threshold of the best micro-F1."""
    return _thresholds(choice).common


def at_own(choice: Choice) -> Floats:
    """Return the threshold of each label with its best F1, (L,)."""
    return _thresholds(choice).by_label


def choose(find_threshold: FindThreshold, choice: Choice) -> Ids:
    """Return the set of the labels that reach their threshold per document, (n, S)."""
    return choose_by_margin(choice.marginals - find_threshold(choice), choice.limits)


def rate(find_threshold: FindThreshold, choice: Choice, label_sets: Ids) -> Floats:
    """Return the sum of p(label) - threshold over the labels of sets (n, G, S): (n, G)."""
    return sum_over_sets(choice.marginals - find_threshold(choice), label_sets)


def choose_by_margin(margins: npt.NDArray[Any], limits: SetLimits) -> Ids:
    """Return the set (n, S) with the largest sum of margins (n, L) among those that fit."""
    if limits.only_seen and limits.seen is not None:
        return limits.seen.best(margins, 1)[0][:, 0]
    ranked = limits.rank(margins)
    is_chosen = ranked >= 0
    if not limits.is_free:
        n_wanted = np.clip(is_chosen.sum(axis=1), limits.min_labels, limits.max_labels)
        is_chosen = _mark_largest(ranked, n_wanted)
    return close_sets(list_columns(is_chosen), limits, partial(sum_over_sets, margins))


def _mark_largest(values: npt.NDArray[Any], n_wanted: Ints) -> Bools:
    """Mark the `n_wanted` largest values of each row."""
    order = np.argsort(-values, axis=1, kind="stable")
    is_wanted = np.arange(values.shape[1]) < n_wanted[:, None]
    is_chosen = np.zeros(values.shape, dtype=bool)
    np.put_along_axis(is_chosen, order, is_wanted, axis=1)
    return is_chosen


def _thresholds(choice: Choice) -> Thresholds:
    assert choice.thresholds is not None, "a model without thresholds is refused before"
    return choice.thresholds


def choose_thresholds(
    marginals: Floats32, is_label: Bools, pairs: TrueMarginals | None = None
) -> Thresholds:
    """Choose thresholds on documents with true labels. Both arrays are (n, L), or (E,) of pairs.

    The common threshold has the best micro-F1. The threshold of a label has the best F1 of that
    label, counted over the true labels plus, with half the weight, those that the marginals
    expect: the few documents of a rare label do not decide alone. A label without documents gets
    the common threshold.
    """
    n, n_labels = marginals.shape if pairs is None else pairs.shape
    if not is_label.any() or not (marginals > 0).any():
        return Thresholds(0.5, np.full(n_labels, 0.5))
    common = float(find_best_thresholds(marginals.reshape(1, -1), is_label.reshape(1, -1))[0])
    n_at_once = max(PAIRS_AT_ONCE // n, 1)
    by_label = np.full(n_labels, np.nan)
    for start in range(0, n_labels, n_at_once):
        part = slice(start, min(start + n_at_once, n_labels))
        if pairs is None:
            probs, is_true = marginals[:, part], is_label[:, part]
        else:
            probs, is_true = pairs.fill(marginals, part), pairs.fill(is_label, part)
        found = find_best_thresholds(probs.T, is_true.T, EXPECTED_WEIGHT)
        by_label[part] = np.where(is_true.any(axis=0), found, np.nan)
    return Thresholds(common, np.where(np.isfinite(by_label), by_label, common))


def find_best_thresholds(
    probs: npt.NDArray[Any], is_true: Bools, expected_weight: float = 0.0
) -> Floats:
    """Return the threshold of best F1 per row (R, m); NaN if all probabilities are 0.

    It is halfway between the smallest probability that passes and the next one. True labels count
    together with those that the probabilities expect, by a weight.
    """
    n_true = is_true.sum(axis=1, keepdims=True).astype(np.float64)
    order = np.argsort(-probs, axis=1)  # equal ones pass together: their order is free
    values = np.take_along_axis(probs, order, axis=1).astype(np.float64)
    n_hits = np.take_along_axis(is_true, order, axis=1).cumsum(axis=1, dtype=np.float64)
    n_passed = np.arange(1, values.shape[1] + 1, dtype=np.float64)
    n_hits += expected_weight * values.cumsum(axis=1)
    n_true += expected_weight * values.sum(axis=1, keepdims=True)
    f1 = 2 * n_hits / ((1 + expected_weight) * n_passed + n_true)
    below = np.concatenate([values[:, 1:], np.zeros((len(values), 1))], axis=1)
    f1[values == below] = -1  # equal probabilities pass together; 0 never passes
    best = f1.argmax(axis=1)
    rows = np.arange(len(values))
    halfway = (values[rows, best] + below[rows, best]) / 2
    return np.where(f1[rows, best] >= 0, halfway, np.nan)
