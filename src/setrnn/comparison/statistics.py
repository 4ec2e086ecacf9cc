"""Bootstrap over documents and seeds: intervals, p-values, and which system is best.

A draw takes n of the n test documents and, per system, n - 1 of its n runs, both with replacement.
(Drawing all n of few runs would underestimate their spread.) All systems are measured on the same
documents of a draw, and all rules of a system on the same runs, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from threadpoolctl import ThreadpoolController

from setrnn.comparison.draws import LABEL_F1, Documents
from setrnn.comparison.records import Comparison, LabelSets, Record
from setrnn.errors import DataError
from setrnn.metrics import LOWER_IS_BETTER, MEASURES

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.float64]

POWER = 0.8  # the chance that as many documents as are needed show a difference
LEVEL = 0.05  # a difference is significant where p is below it
LOG_LIKELIHOOD = "set_log_likelihood"  # a measure too, of runs with log p of each true set
# No p is below 2 / (DRAWS + 1): few enough for all pairs of 15 systems after Holm's correction.
DRAWS = 4999


@dataclass(frozen=True)
class Entry:
    """A system and the rule that it predicts by: the unit of comparison."""

    system: str
    rule: str


@dataclass(frozen=True)
class Summary:
    """A score: mean and standard deviation over seeds, and the 95% interval."""

    mean: float
    std: float | None  # None where there is one seed
    n_seeds: int
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """The first score minus the second: the mean, its 95% interval and the two-sided p."""

    mean: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Standing:
    """The entry with the best mean, compared with all others."""

    best: Entry
    stands: bool  # whether the best is significantly better than every other entry
    tied: frozenset[Entry]  # others that are not significantly different from the best
    p: dict[Entry, float]  # of each other entry against the best, Holm-corrected


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for multiple tests by Holm's method, in the order given.

    The chance of one false rejection among all of them stays at the level of one test.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


class Bootstrap:
    """The scores of all entries over draws of documents and seeds, computed once and kept.

    Runs that failed are left out. Draws are made on first use.

    Attributes:
        entries: all systems by all their rules.
        n_draws: the number of draws.
        n_documents: the number of test documents.

    Example:
        >>> from setrnn.comparison.records import Comparison, Record, TestResults
        >>> comparison = Comparison(
        ...     "made-up", "0", True, {"test": 40}, False, ("a", "b"), (1, 1),
        ...     ids=tuple(map(str, range(40))), truth=[[0]] * 40,
        ... )
        >>> good, poor = [[0]] * 40, [[1]] * 30 + [[0]] * 10
        >>> records = [
        ...     Record(name, 0, "0", "set", test=TestResults({"set": sets}, {}))
        ...     for name, sets in (("good", good), ("poor", poor))
        ... ]
        >>> draws = Bootstrap(comparison, records, n_draws=99)
        >>> found = draws.difference(Entry("good", "set"), Entry("poor", "set"), "instance_f1")
        >>> found.mean, found.p
        (0.75, 0.02)
    """

    def __init__(
        self,
        comparison: Comparison,
        records: Sequence[Record],
        n_draws: int = DRAWS,
        seed: int = 0,
    ) -> None:
        n = len(comparison.truth)
        runs: dict[Entry, list[LabelSets]] = {}
        log_probs: dict[str, list[Sequence[float | None]]] = {}  # of the true sets
        for record in sorted(records, key=lambda record: record.seed):
            if record.test is None:
                continue
            log_probs.setdefault(record.method, []).append(record.test.true_log_probs or ())
            for rule, predicted in record.test.predicted.items():
                if len(predicted) != n:
                    raise DataError(
                        f"Run '{record.name}' has {len(predicted)} predictions by rule '{rule}', "
                        f"but there are {n} test documents. Remove the record, then run 'setrnn "
                        "compare' again."
                    )
                runs.setdefault(Entry(record.method, rule), []).append(predicted)
        self.entries = tuple(runs)
        self.n_draws, self.n_documents = n_draws, n
        self._documents, self._runs = Documents(comparison, n_draws, seed), runs
        self._true_log_probs = {  # by system: runs x documents, NaN where not known
            system: np.array(rows, dtype=np.float64)
            for system, rows in log_probs.items()
            if all(len(row) == n for row in rows)
        }
        self._scores: dict[Entry, dict[str, list[float]]] = {}
        self._drawn: dict[Entry, dict[str, Values]] = {}  # runs x draws
        self._shares: dict[str, Values] = {}
        self._numbers: dict[Entry, NDArray[np.int64]] = {}
        self._threads = ThreadpoolController()

    def has(self, entry: Entry, measure: str) -> bool:
        """Return whether an entry has a measure: log p(true set) may not be recorded."""
        return measure != LOG_LIKELIHOOD or entry.system in self._true_log_probs

    def scores(self, entry: Entry, measure: str) -> list[float]:
        """Return the score of each run on all test documents, in the order of the seeds."""
        if measure == LOG_LIKELIHOOD:
            return [float(each) for each in np.nanmean(self._true_log_probs[entry.system], axis=1)]
        if entry not in self._scores:
            runs = [self._documents.scores(predicted) for predicted in self._runs[entry]]
            self._scores[entry] = {name: [run[name] for run in runs] for name in MEASURES}
        return self._scores[entry][measure]

    def mean(self, entry: Entry, measure: str) -> float:
        """Return the mean score over seeds."""
        return float(np.mean(self.scores(entry, measure)))

    def summary(self, entry: Entry, measure: str) -> Summary:
        """Return mean, standard deviation and 95% interval of a score."""
        scores = self.scores(entry, measure)
        std = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
        mean = self.mean(entry, measure)
        drawn = _correct_bias(self._draws(entry, measure), mean, measure)
        low, high = _interval(drawn if measure == LOG_LIKELIHOOD else drawn.clip(0, 1))
        return Summary(mean, std, len(scores), low, high)

    def difference(self, first: Entry, second: Entry, measure: str) -> Difference:
        """Compare two entries on the same draws."""
        drawn = self._draws(first, measure) - self._draws(second, measure)
        mean = self.mean(first, measure) - self.mean(second, measure)
        corrected = _correct_bias(drawn, mean, measure)
        # A draw without any document that differs shows nothing: it counts on both sides.
        sides = np.where(drawn == 0, 0, corrected)
        p = max(two_sided(sides), least_p(self._n_differing(first, second, measure)))
        if measure != LOG_LIKELIHOOD:
            corrected = corrected.clip(-1, 1)
        return Difference(mean, *_interval(corrected), p=p)

    def compare_means(self, first: str, values: Values, second: str, others: Values) -> Difference:
        """Compare the means of values of two systems, each (runs, documents).

        The mean is over the documents with a value: NaN where there is none.
        """
        drawn, mean = np.zeros(self.n_draws), 0.0
        for sign, system, each in ((1, first, values), (-1, second, others)):
            shares = self._documents.draw_runs(system, len(each))
            drawn += sign * (self._documents.draw_means(each) * shares).sum(axis=0)
            mean += sign * float(np.nanmean(each, axis=1).mean())
        p = max(two_sided(drawn), least_p(_count_differing(values, others)))
        return Difference(mean, *_interval(drawn), p=p)

    def documents_needed(self, first: Entry, second: Entry, measure: str, n_tests: int) -> Needed:
        """Estimate how many test documents would show the difference of two entries.

        They show it with a chance of 80%, by a test at .05 / `n_tests`: the strictest step of
        Holm's method over the tests of the family.
        """
        total = (self._draws(first, measure) - self._draws(second, measure)).var()
        ours, theirs = (self._run_draws(each, measure).mean(axis=0) for each in (first, second))
        of_documents = float((ours - theirs).var())
        of_seeds = max(0.0, float(total) - of_documents)
        mean = self.mean(first, measure) - self.mean(second, measure)
        return estimate_documents(mean, of_documents, of_seeds, self.n_documents, n_tests)

    def standing(self, entries: Sequence[Entry], measure: str) -> Standing:
        """Find the best entry, and the entries that are not significantly different from it."""
        if not entries:
            raise DataError("There is nothing to compare: no run succeeded.")
        sign = -1 if measure in LOWER_IS_BETTER else 1
        best = max(entries, key=lambda entry: sign * self.mean(entry, measure))
        others = [entry for entry in entries if entry != best]
        p_values = holm([self.difference(best, other, measure).p for other in others])
        p = dict(zip(others, p_values, strict=True))
        tied = frozenset(entry for entry, value in p.items() if value >= LEVEL)
        return Standing(best, stands=bool(others) and not tied, tied=tied, p=p)

    def pairs(
        self, entries: Sequence[Entry], measure: str
    ) -> dict[tuple[Entry, Entry], Difference]:
        """Compare all pairs; p-values are Holm-corrected over them."""
        pairs = list(combinations(entries, 2))
        differences = [self.difference(first, second, measure) for first, second in pairs]
        corrected = holm([difference.p for difference in differences])
        return {
            pair: replace(difference, p=p)
            for pair, difference, p in zip(pairs, differences, corrected, strict=True)
        }

    def _n_differing(self, first: Entry, second: Entry, measure: str) -> int:
        """Count the documents for which the runs of both entries are not all the same."""
        if measure == LOG_LIKELIHOOD:
            known = self._true_log_probs
            return _count_differing(known[first.system], known[second.system])
        return _count_differing(self._predictions(first), self._predictions(second))

    def _predictions(self, entry: Entry) -> NDArray[np.int64]:
        """Return a number per predicted set, equal for equal sets: runs x documents."""
        if entry not in self._numbers:
            self._numbers[entry] = np.array(
                [[hash(frozenset(row)) for row in run] for run in self._runs[entry]]
            )
        return self._numbers[entry]

    def _draws(self, entry: Entry, measure: str) -> Values:
        """Return the draws of a measure: the mean over the drawn runs."""
        drawn = self._run_draws(entry, measure)
        if entry.system not in self._shares:
            self._shares[entry.system] = self._documents.draw_runs(entry.system, len(drawn))
        means: Values = (drawn * self._shares[entry.system]).sum(axis=0)
        return means

    def _run_draws(self, entry: Entry, measure: str) -> Values:
        """Return the draws of a measure per run: runs x draws."""
        drawn = self._drawn.setdefault(entry, {})
        if measure not in drawn:
            with self._threads.limit(limits=1):  # small products: a busy core would delay each
                drawn.update(self._draw(entry, measure))
        return drawn[measure]

    def _draw(self, entry: Entry, measure: str) -> dict[str, Values]:
        """Draw a measure, and those that cost nothing more."""
        if measure == LOG_LIKELIHOOD:
            return {measure: self._documents.draw_means(self._true_log_probs[entry.system])}
        if measure == LABEL_F1:
            return {measure: self._documents.draw_label_f1(self._runs[entry])}
        return self._documents.draw(self._runs[entry])


def _correct_bias(drawn: Values, mean: float, measure: str) -> Values:
    """Shift the draws of label-F1 so that their mean is the score on all documents.

    F1 is concave in the few documents of a rare label, so that its draws are lower than the score.
    """
    return drawn + (mean - drawn.mean()) if measure == LABEL_F1 else drawn


def _count_differing(first: NDArray[Any], second: NDArray[Any]) -> int:
    """Count the columns whose values are not all the same."""
    both = np.nan_to_num(np.concatenate([first, second]))
    return int((both != both[0]).any(axis=0).sum())


def _interval(drawn: Values) -> tuple[float, float]:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def least_p(n_differing: int) -> float:
    """Return the least p of a sign test over the documents that differ.

    A bootstrap alone overstates few documents: if all of them are on one side, no draw is on the
    other side.

    Example:
        >>> least_p(4)
        0.125
    """
    return min(1.0, 2.0 ** (1 - n_differing))


def two_sided(drawn: Values) -> float:
    """Return twice the share of draws on the rarer side of 0; draws at 0 count on both sides."""
    n_rarer = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return min(1.0, 2 * (n_rarer + 1) / (len(drawn) + 1))


@dataclass(frozen=True)
class Needed:
    """The test documents that would show a difference as large as the measured one."""

    n_documents: float  # infinite where nothing was measured
    needs_seeds: bool  # whether it also takes many more seeds: their spread hides the difference


def estimate_documents(
    mean: float, of_documents: float, of_seeds: float, n_documents: int, n_tests: int = 1
) -> Needed:
    """Estimate the documents needed from a difference and its variances on `n_documents`.

    The variance of the documents shrinks with their number, that of the seeds does not. Where the
    seeds take more than half of the variance that this power allows, the estimate is for so many
    seeds that theirs does not matter.

    Example:
        >>> round(estimate_documents(0.01, 0.005**2, 0.0, 1000).n_documents)
        1962
    """
    distance = float(norm.isf(LEVEL / (2 * n_tests)) + norm.ppf(POWER))
    most = (mean / distance) ** 2  # the variance at which the test has this power
    needs_seeds = of_seeds > most / 2
    room = most if needs_seeds else most - of_seeds
    return Needed(n_documents * of_documents / room if room > 0 else inf, needs_seeds)
