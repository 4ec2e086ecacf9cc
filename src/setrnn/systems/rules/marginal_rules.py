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
# How much true and expected labels count: see `find_best_thresholds`. Chosen by fitting on one half
# of valid and measuring on the other: docs/rules.md.
ONLY_TRUE, BOTH, ONLY_EXPECTED = (1.0, 0.0), (1.0, 0.5), (0.0, 1.0)
# The threshold of a label counts as often as it has documents, beside the one that is expected
# without documents, and the common one: benchmarks/few_documents.py.
AS_EXPECTED, AS_COMMON = 2.0, 0.5
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

    The common threshold has the best micro-F1. The threshold of a label is a geometric mean of
    three: the one with the best F1 on its documents, counted as often as there are such documents;
    the one with the best F1 that the marginals expect; and the common one. On one document, the
    best threshold may be so low that the label would be predicted for every document. A threshold
    that most documents reach is raised to the common one. A label whose marginals are all 0 gets
    the common one.
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
        found, expected = (
            find_best_thresholds(probs.T, is_true.T, weights) for weights in (BOTH, ONLY_EXPECTED)
        )
        n_true = is_true.sum(axis=0)
        sums = n_true * np.log(found) + AS_EXPECTED * np.log(expected) + AS_COMMON * np.log(common)
        mean = np.exp(sums / (n_true + AS_EXPECTED + AS_COMMON))
        says_little = (probs >= mean).mean(axis=0) > 0.5
        by_label[part] = np.where(says_little, np.maximum(mean, common), mean)
    return Thresholds(common, np.where(np.isfinite(by_label), by_label, common))


def find_best_thresholds(
    probs: npt.NDArray[Any], is_true: Bools, weights: tuple[float, float] = ONLY_TRUE
) -> Floats:
    """Return the threshold of best F1 per row (R, m); NaN if all probabilities are 0.

    It is halfway between the smallest probability that passes and the next one. The weights say how
    much true labels count, and how much those that the probabilities expect.
    """
    of_true, of_expected = weights
    order = np.argsort(-probs, axis=1)  # equal ones pass together: their order is free
    values = np.take_along_axis(probs, order, axis=1).astype(np.float64)
    counts = of_true * np.take_along_axis(is_true, order, axis=1) + of_expected * values
    n_hits = counts.cumsum(axis=1)
    n_passed = (of_true + of_expected) * np.arange(1, values.shape[1] + 1)
    f1 = 2 * n_hits / (n_passed + n_hits[:, -1:])
    below = np.concatenate([values[:, 1:], np.zeros((len(values), 1))], axis=1)
    f1[values == below] = -1  # equal probabilities pass together; 0 never passes
    best = f1.argmax(axis=1)
    rows = np.arange(len(values))
    halfway = (values[rows, best] + below[rows, best]) / 2
    return np.where(f1[rows, best] >= 0, halfway, np.nan)
