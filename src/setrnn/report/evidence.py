"""Evidence for claims: comparisons of systems, each with its numbers in words and a verdict.

Beside the measures, claims rest on rare labels, label orders, set sizes and acceptance.
"""

# D draws, n documents

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import Comparison, LabelSets, Record
from setrnn.comparison.statistics import (
    LEVEL,
    Bootstrap,
    Difference,
    Entry,
    holm,
    least_p,
    two_sided,
)
from setrnn.indicators import indicator_matrix
from setrnn.metrics import MEASURES, document_f1
from setrnn.report.wording import format_difference, format_p, format_score
from setrnn.tagging.acceptance import Acceptance, fit_acceptance

if TYPE_CHECKING:
    from setrnn.indicators import Sparse

Values = npt.NDArray[np.float64]
# From the number of times that each document is drawn, (D, n), to a value per run, (D, runs)
Statistic = Callable[[Values], Values]

HOLDS, IN_PART, MIXED = "holds", "holds in part", "mixed"
FAILS, UNDECIDED = "does not hold", "not shown"
PAPERS_MEASURES = ("instance_f1", "label_f1")
NEGLIGIBLE = 0.005  # a gain whose interval ends below it does not count as a gain
N_DRAWS, BLOCK = 4000, 500
RARE_SHARE = 0.5  # of the labels that occur in test: the rarer half
TARGET, CONFIDENCE = 0.9, 0.95  # of acceptance


@dataclass(frozen=True)
class Evidence:
    """One comparison: its numbers in words, and its verdict on a claim."""

    text: str
    verdict: str | None = None  # None where there is nothing to judge
    difference: Difference | None = None
    p: float | None = None  # Holm-corrected over the comparisons of the claim
    # Whether a measure points to the claim (1) or to the contrary (-1), significantly or not; 0 or
    # None where the difference is negligible or there is none.
    direction: int | None = None


@dataclass(frozen=True)
class Finding:
    """A claim, and the evidence for or against it on this data."""

    name: str
    claim: str
    evidence: tuple[Evidence, ...]

    @property
    def verdict(self) -> str | None:
        """Combine the verdicts of the comparisons; None where there is nothing to judge.

        It is mixed where a measure shows the claim or the contrary, and another one points the
        other way.
        """
        verdicts = {each.verdict for each in self.evidence if each.verdict is not None}
        if not verdicts:
            return None
        directions = {each.direction for each in self.evidence}
        if HOLDS in verdicts and (FAILS in verdicts or -1 in directions):
            return MIXED
        if FAILS in verdicts and 1 in directions:
            return MIXED
        if FAILS in verdicts:
            return FAILS
        if HOLDS in verdicts:
            return HOLDS if verdicts == {HOLDS} else IN_PART
        return UNDECIDED


class Study:
    """The runs of a comparison that succeeded, and their statistics."""

    def __init__(
        self, comparison: Comparison, records: Sequence[Record], bootstrap: Bootstrap
    ) -> None:
        self.comparison, self.records, self.bootstrap = comparison, records, bootstrap
        self.runs: dict[str, list[Record]] = {}
        for record in records:
            if record.test is not None:
                self.runs.setdefault(record.method, []).append(record)

    def has(self, *methods: str) -> bool:
        """Return whether all of these systems have runs."""
        return all(method in self.runs for method in methods)

    def own(self, method: str) -> Entry:
        """Return a system by its own rule."""
        return Entry(method, self.runs[method][0].own_rule)

    def has_rule(self, method: str, rule: str) -> bool:
        """Return whether a system predicted by a rule."""
        return self.has(method) and Entry(method, rule) in set(self.bootstrap.entries)

    def compare(self, first: Entry, second: Entry, measures: Sequence[str]) -> list[Evidence]:
        """Test whether the first entry is ahead of the second, per measure."""
        found = judge_all(
            [
                (
                    f"{MEASURES[measure]}: {self.format_pair(first, second, measure)}, ",
                    self.bootstrap.difference(first, second, measure),
                )
                for measure in measures
            ]
        )
        return [replace(each, direction=find_direction(each.difference)) for each in found]

    def format_pair(self, first: Entry, second: Entry, measure: str) -> str:
        """Write the scores of two entries."""
        one, other = (self.bootstrap.summary(each, measure).mean for each in (first, second))
        if first.system == second.system:
            return f"{format_score(other)} → {format_score(one)}"
        return f"{first.system} {format_score(one)}, {second.system} {format_score(other)}"


def judge(mean: float, p: float) -> str:
    """Return the verdict on the claim that a difference is above zero."""
    if p >= LEVEL or mean == 0:
        return UNDECIDED
    return HOLDS if mean > 0 else FAILS


def find_direction(difference: Difference | None) -> int:
    """Return whether a difference is up (1), down (-1) or negligible (0)."""
    if difference is None or abs(difference.mean) < NEGLIGIBLE:
        return 0
    return 1 if difference.mean > 0 else -1


def judge_all(comparisons: Sequence[tuple[str, Difference]]) -> list[Evidence]:
    """Judge the comparisons of a claim, each with the words before its numbers.

    The p-values are Holm-corrected over the comparisons.
    """
    corrected = holm([found.p for _, found in comparisons])
    return [
        Evidence(
            f"{words}{format_difference(found)}, {format_p(p, len(comparisons))}",
            judge(found.mean, p),
            found,
            p,
        )
        for (words, found), p in zip(comparisons, corrected, strict=True)
    ]


Look = Callable[[Study], list[Evidence]]  # empty where a system is missing


@dataclass(frozen=True)
class RareLabels:
    """The rare labels, and the mean F1 of two systems on them."""

    n_labels: int
    most_documents: int  # a rare label has at most so many training documents
    first: float
    second: float
    difference: Difference


@dataclass(frozen=True)
class GainBySize:
    """The gain of predicting the set instead of the sequence, by the size of the true set."""

    middle: int  # smaller sets have at most so many labels
    smaller: float
    larger: float
    growth: Difference  # the gain on larger sets minus that on smaller ones


def compare_rare_labels(
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
        return None  # all labels are equally frequent
    true_columns = truth[:, rare].astype(np.float64)

    def predict(records: Sequence[Record]) -> list[Sparse]:
        sets = [indicator_matrix(_own_sets(each), comparison.n_labels) for each in records]
        return [each[:, rare].astype(np.float64) for each in sets]

    def mean_f1(predicted: Sequence[Sparse]) -> Statistic:
        pairs = [(true_columns.multiply(each).tocsr(), true_columns + each) for each in predicted]

        def measure(weights: Values) -> Values:
            f1 = [
                2 * (weights @ correct) / np.maximum(weights @ both, 1) for correct, both in pairs
            ]
            return np.stack([each.mean(axis=1) for each in f1], axis=1)  # of (D, labels)

        return measure

    predicted = predict(first), predict(second)
    ours, theirs = map(mean_f1, predicted)
    runs = [*predicted[0], *predicted[1]]
    differs = sum(abs(each - runs[0]) for each in runs[1:])
    n_differing = int(np.count_nonzero(np.asarray(differs.sum(axis=1))))
    everyone = np.ones((1, len(comparison.truth)))
    return RareLabels(
        len(rare),
        most,
        float(ours(everyone).mean()),
        float(theirs(everyone).mean()),
        resample(len(comparison.truth), n_differing, ours, theirs),
    )


def compare_entropies(first: Sequence[Record], second: Sequence[Record]) -> Difference | None:
    """Compare the entropy over orders on documents with two predicted labels or more in both."""
    ours, theirs = _entropies(first), _entropies(second)
    if ours is None or theirs is None:
        return None
    is_known = np.isfinite(ours).all(axis=0) & np.isfinite(theirs).all(axis=0)
    if is_known.sum() < 2:
        return None
    ours, theirs = ours[:, is_known], theirs[:, is_known]
    both = np.concatenate([ours, theirs])
    n_differing = int((both != both[0]).any(axis=0).sum())
    return resample(ours.shape[1], n_differing, _averaging(ours), _averaging(theirs))


def compare_gains_by_size(comparison: Comparison, records: Sequence[Record]) -> GainBySize | None:
    """Compare the gain of predicting the set instead of the sequence on large and small sets."""
    gains = _document_gains(comparison, records)
    sizes = np.array([len(row) for row in comparison.truth], dtype=np.float64)
    if gains is None or len(np.unique(sizes)) < 2:
        return None
    middle = int(np.median(sizes))
    if middle == sizes.max():
        middle -= 1
    is_small = sizes <= middle
    smaller, larger = gains[:, is_small], gains[:, ~is_small]

    def growth(weights: Values) -> Values:
        on_larger = _averaging(larger)(weights[:, ~is_small])
        return on_larger - _averaging(smaller)(weights[:, is_small])

    found = resample(len(sizes), int(gains.any(axis=0).sum()), growth)
    return GainBySize(middle, float(smaller.mean()), float(larger.mean()), found)


def fit_acceptances(
    comparison: Comparison, records: Sequence[Record], target: float = TARGET
) -> list[Acceptance]:
    """Find which test documents can be accepted at the target accuracy, per run by its own rule."""
    truth = [frozenset(row) for row in comparison.truth]
    found = []
    for record in records:
        rule = record.own_rule
        probs = [] if record.test is None else record.test.probability.get(rule, [])
        if len(probs) != len(truth) or not truth:
            continue
        pairs = zip(_own_sets(record), truth, strict=True)
        is_right = np.array([frozenset(row) == true for row, true in pairs])
        given = np.asarray(probs, dtype=np.float64)
        found.append(fit_acceptance(rule, given, is_right, target, CONFIDENCE))
    return found


def resample(
    n: int, n_differing: int, first: Statistic, second: Statistic | None = None
) -> Difference:
    """Bootstrap a statistic of one system, or the difference of two, over documents and runs.

    Documents and runs are drawn as in `setrnn.comparison.statistics`. `n_differing` of the n
    documents are not the same in all runs: p is at least that of a sign test over them.
    """
    random = np.random.default_rng(0)
    drawn = []
    for _ in range(N_DRAWS // BLOCK):
        taken = random.integers(n, size=(BLOCK, n)) + n * np.arange(BLOCK)[:, None]
        weights = np.bincount(taken.ravel(), minlength=BLOCK * n).reshape(BLOCK, n).astype(float)
        values = average_drawn_runs(first(weights), random)
        if second is not None:
            values = values - average_drawn_runs(second(weights), random)
        drawn.append(values)
    draws = np.concatenate(drawn)
    everyone = np.ones((1, n))
    mean = first(everyone).mean() - (0 if second is None else second(everyone).mean())
    # The F1 of a rare label is concave in its few documents, so that its draws are biased.
    corrected = draws + (mean - draws.mean())
    low, high = np.percentile(corrected, [2.5, 97.5])
    p = max(two_sided(np.where(draws == 0, 0, corrected)), least_p(n_differing))
    return Difference(float(mean), float(low), float(high), p)


def average_drawn_runs(values: Values, random: np.random.Generator) -> Values:
    """Average values (D, runs) over the runs that each draw takes: one fewer than there are."""
    n_draws, n_runs = values.shape
    n_taken = max(1, n_runs - 1)
    taken = random.multinomial(n_taken, np.full(n_runs, 1 / n_runs), size=n_draws)
    means: Values = (values * taken).sum(axis=1) / n_taken
    return means


def _averaging(values: Values) -> Statistic:
    """Return the statistic that averages values (runs, n) over the drawn documents."""
    return lambda weights: weights @ values.T / np.maximum(weights.sum(axis=1, keepdims=True), 1)


def _entropies(records: Sequence[Record]) -> Values | None:
    """Return the entropy over the orders of each predicted set, (runs, n); NaN where unknown."""
    rows = [
        [np.nan if each is None else each for each in record.test.order_entropy]
        for record in records
        if record.test is not None and record.test.order_entropy is not None
    ]
    return np.array(rows, dtype=np.float64) if rows else None


def _document_gains(comparison: Comparison, records: Sequence[Record]) -> Values | None:
    """Return the gain of rule set over rule sequence on each document, (runs, n)."""
    truth = indicator_matrix(comparison.truth, comparison.n_labels)

    def f1(sets: LabelSets) -> Values:
        return document_f1(truth, indicator_matrix(sets, comparison.n_labels))

    gains = [
        f1(record.test.predicted["set"]) - f1(record.test.predicted["sequence"])
        for record in records
        if record.test is not None and {"set", "sequence"} <= set(record.rules)
    ]
    return np.stack(gains) if gains else None


def _own_sets(record: Record) -> LabelSets:
    assert record.test is not None
    return record.test.predicted[record.own_rule]
