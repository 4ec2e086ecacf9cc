"""What findings rest on beside the measures: rare labels, label orders, set sizes, acceptance."""

# D draws, n documents

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import Comparison, LabelSets, Record
from setrnn.comparison.statistics import Difference, least_p, two_sided
from setrnn.metrics import document_f1, indicator_matrix
from setrnn.tagging.acceptance import fit_acceptance

if TYPE_CHECKING:
    from setrnn.metrics import Sparse

Values = npt.NDArray[np.float64]
# How often each document is drawn, (D, n), to a value of each run, (D, runs)
Statistic = Callable[[Values], Values]

N_DRAWS, BLOCK = 4000, 500
RARE_SHARE = 0.5  # of the labels that test has: the rarer half
TARGET, CONFIDENCE = 0.9, 0.95  # of acceptance


@dataclass(frozen=True)
class RareLabels:
    """The labels that count as rare, and how much better one system does on them."""

    n_labels: int
    most_documents: int  # of train, that a rare label has
    first: float
    second: float
    difference: Difference


@dataclass(frozen=True)
class GainBySize:
    """What predicting the set gains, by the size of the true set."""

    middle: int  # the largest of the smaller sets
    smaller: float
    larger: float
    growth: Difference  # the larger less the smaller


def rare_labels(
    comparison: Comparison, first: Sequence[Record], second: Sequence[Record]
) -> RareLabels | None:
    """Compare the mean F1 over the rarer half of the labels, each system by its own rule."""
    truth = indicator_matrix(comparison.truth, comparison.n_labels)
    counts = np.asarray(comparison.label_counts)
    found = np.flatnonzero(np.asarray(truth.sum(axis=0)).ravel() > 0)
    if len(found) < 2:
        return None
    most = int(np.quantile(counts[found], RARE_SHARE, method="lower"))
    rare = found[counts[found] <= most]
    if len(rare) == len(found):
        return None  # all are as frequent
    true_columns = truth[:, rare].astype(np.float64)

    def mean_f1(records: Sequence[Record]) -> Statistic:
        predicted = [
            indicator_matrix(_own_sets(each), comparison.n_labels)[:, rare] for each in records
        ]
        pairs = [
            (true_columns.multiply(each).tocsr(), true_columns + each.astype(np.float64))
            for each in predicted
        ]

        def measure(weights: Values) -> Values:
            scores = []
            for correct, both in pairs:
                n_both = weights @ both  # (D, labels)
                f1 = 2 * (weights @ correct) / np.maximum(n_both, 1)
                scores.append(f1.mean(axis=1))
            return np.stack(scores, axis=1)

        return measure

    ours, theirs = mean_f1(first), mean_f1(second)
    everyone = np.ones((1, len(comparison.truth)))
    return RareLabels(
        len(rare),
        most,
        float(ours(everyone).mean()),
        float(theirs(everyone).mean()),
        resampled(len(comparison.truth), ours, theirs),
    )


def entropy_difference(first: Sequence[Record], second: Sequence[Record]) -> Difference | None:
    """Tell how much more the first spreads over orders, where both predict two labels or more."""
    ours, theirs = _entropies(first), _entropies(second)
    if ours is None or theirs is None:
        return None
    is_known = np.isfinite(ours).all(axis=0) & np.isfinite(theirs).all(axis=0)
    if is_known.sum() < 2:
        return None
    ours, theirs = ours[:, is_known], theirs[:, is_known]
    return resampled(ours.shape[1], _mean_of(ours), _mean_of(theirs))


def gain_by_size(comparison: Comparison, records: Sequence[Record]) -> GainBySize | None:
    """Tell whether predicting the set, not the sequence, gains more where sets are larger."""
    gains = _document_gains(comparison, records)
    sizes = np.array([len(row) for row in comparison.truth], dtype=np.float64)
    if gains is None or len(np.unique(sizes)) < 2:
        return None
    middle = int(np.median(sizes))
    if middle == sizes.max():
        middle -= 1
    is_small = sizes <= middle

    def growth(weights: Values) -> Values:
        return _mean_of(gains[:, ~is_small])(weights[:, ~is_small]) - _mean_of(gains[:, is_small])(
            weights[:, is_small]
        )

    return GainBySize(
        middle,
        float(gains[:, is_small].mean()),
        float(gains[:, ~is_small].mean()),
        resampled(len(sizes), growth),
    )


def accepted_share(comparison: Comparison, records: Sequence[Record]) -> list[float]:
    """Return of each run the share of documents that can be accepted at the target accuracy."""
    truth = [frozenset(row) for row in comparison.truth]
    shares = []
    for record in records:
        rule = record.own_rule
        probs = [] if record.test is None else record.test.probability.get(rule, [])
        if len(probs) != len(truth) or not truth:
            continue
        is_right = [
            frozenset(row) == true for row, true in zip(_own_sets(record), truth, strict=True)
        ]
        fitted = fit_acceptance(
            rule,
            np.asarray(probs, dtype=np.float64),
            np.asarray(is_right, dtype=bool),
            TARGET,
            CONFIDENCE,
        )
        shares.append(fitted.share)
    return shares


def resampled(n: int, first: Statistic, second: Statistic | None = None) -> Difference:
    """Bootstrap a statistic of one system, or the difference of two, over documents and runs.

    Drawn as `setrnn.comparison.statistics` draws: documents together, of each system's runs one
    fewer than there are.
    """
    random = np.random.default_rng(0)
    drawn = []
    for _ in range(N_DRAWS // BLOCK):
        weights = _drawn(n, random)
        values = _mean_of_drawn_runs(first(weights), random)
        if second is not None:
            values = values - _mean_of_drawn_runs(second(weights), random)
        drawn.append(values)
    draws = np.concatenate(drawn)
    low, high = np.percentile(draws, [2.5, 97.5])
    everyone = np.ones((1, n))
    mean = first(everyone).mean() - (0 if second is None else second(everyone).mean())
    p = max(two_sided(draws), least_p(n))
    return Difference(float(mean), float(low), float(high), p)


def _drawn(n: int, random: np.random.Generator) -> Values:
    """Return how often each of n documents is drawn, (BLOCK, n)."""
    taken = random.integers(n, size=(BLOCK, n)) + n * np.arange(BLOCK)[:, None]
    return np.bincount(taken.ravel(), minlength=BLOCK * n).reshape(BLOCK, n).astype(np.float64)


def _mean_of_drawn_runs(values: Values, random: np.random.Generator) -> Values:
    n_draws, n_runs = values.shape
    n_taken = max(1, n_runs - 1)
    taken = random.multinomial(n_taken, np.full(n_runs, 1 / n_runs), size=n_draws)
    means: Values = (values * taken).sum(axis=1) / n_taken
    return means


def _mean_of(values: Values) -> Statistic:
    """Return the statistic that is the mean over documents, of values (runs, n)."""
    return lambda weights: weights @ values.T / np.maximum(weights.sum(axis=1, keepdims=True), 1)


def _entropies(records: Sequence[Record]) -> Values | None:
    """Return the entropy over the orders of each predicted set, (runs, n); NaN if unknown."""
    rows = [
        [np.nan if each is None else each for each in record.test.order_entropy]
        for record in records
        if record.test is not None and record.test.order_entropy is not None
    ]
    return np.array(rows, dtype=np.float64) if rows else None


def _document_gains(comparison: Comparison, records: Sequence[Record]) -> Values | None:
    """Return what rule set gains on each document over rule sequence, (runs, n)."""
    truth = indicator_matrix(comparison.truth, comparison.n_labels)
    gains = [
        _f1(truth, record.test.predicted["set"]) - _f1(truth, record.test.predicted["sequence"])
        for record in records
        if record.test is not None and {"set", "sequence"} <= set(record.rules)
    ]
    return np.stack(gains) if gains else None


def _f1(truth: Sparse, sets: LabelSets) -> Values:
    return document_f1(truth, indicator_matrix(sets, truth.shape[1]))


def _own_sets(record: Record) -> LabelSets:
    assert record.test is not None
    return record.test.predicted[record.own_rule]
