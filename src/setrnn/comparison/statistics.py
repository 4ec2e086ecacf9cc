"""Bootstrap over documents and seeds: intervals, p-values, and which system is best.

A draw takes n of the n test documents and, per system, n - 1 of its n runs, both with replacement.
(Drawing all n of few runs would underestimate their spread.) All systems are measured on the same
documents of a draw, and all rules of a system on the same runs, so that differences are paired.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from setrnn.comparison.records import Comparison, LabelSets, Record
from setrnn.errors import DataError
from setrnn.metrics import LOWER_IS_BETTER, MEASURES, document_f1, evaluate_sets, indicator_matrix

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    from setrnn.metrics import Sparse

    Floats: TypeAlias = NDArray[np.float32]
    Values: TypeAlias = NDArray[np.float64]

LEVEL = 0.05  # a difference is significant where p is below it
# No p is below 2 / (DRAWS + 1): few enough for all pairs of 15 systems after Holm's correction.
DRAWS = 4999
_LEAST_DRAWS = 39  # fewer draws have no 2.5% tail
_BLOCK_DRAWS = 128  # measured at once: their counts fit into the processor's cache
_KEPT_WEIGHTS = 1 << 28  # documents x draws kept in memory: 1 GB


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


def bootstrap(
    comparison: Comparison, records: Sequence[Record], draws: int = DRAWS, seed: int = 0
) -> Bootstrap:
    """Prepare the comparison of all runs that succeeded; draws are made on first use.

    Example:
        >>> from setrnn.comparison.records import Comparison, Record, TestResults
        >>> comparison = Comparison(
        ...     "made-up", "0", True, {"test": 40}, False, ("a", "b"), (1, 1),
        ...     ids=tuple(map(str, range(40))), truth=[[0]] * 40,
        ... )
        >>> good, poor = [[0]] * 40, [[1]] * 30 + [[0]] * 10
        >>> records = [
        ...     Record(name, 0, "0", "set", test=TestResults({"set": sets}, {}, {}))
        ...     for name, sets in (("good", good), ("poor", poor))
        ... ]
        >>> draws = bootstrap(comparison, records, draws=99)
        >>> found = draws.difference(Entry("good", "set"), Entry("poor", "set"), "instance_f1")
        >>> found.mean, found.p
        (0.75, 0.02)
    """
    if draws < _LEAST_DRAWS:
        raise DataError(f"draws must be {_LEAST_DRAWS} or more, got {draws}.")
    runs: dict[Entry, list[LabelSets]] = {}
    for record in sorted(records, key=lambda record: record.seed):
        for rule, predicted in ({} if record.test is None else record.test.predicted).items():
            if len(predicted) != len(comparison.truth):
                raise DataError(
                    f"Run '{record.name}' has {len(predicted)} predictions by rule '{rule}', but "
                    f"there are {len(comparison.truth)} test documents. Remove the record, then "
                    "run 'setrnn compare' again."
                )
            runs.setdefault(Entry(record.method, rule), []).append(predicted)
    return Bootstrap(_Documents(comparison, draws, seed), runs)


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
    """The scores of all entries over draws of documents and seeds, computed once and kept."""

    def __init__(self, documents: _Documents, runs: dict[Entry, list[LabelSets]]) -> None:
        self._documents = documents
        self._runs = runs
        self._scores: dict[Entry, dict[str, list[float]]] = {}
        self._drawn: dict[Entry, dict[str, Values]] = {}
        self._numbers: dict[Entry, NDArray[np.int64]] = {}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All systems by all their rules."""
        return tuple(self._runs)

    @property
    def n_draws(self) -> int:
        """The number of draws."""
        return self._documents.n_draws

    def scores(self, entry: Entry, measure: str) -> list[float]:
        """Return the score of each run on all test documents, in the order of the seeds."""
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
        drawn = _correct_bias(self._draws(entry)[measure], mean, measure)
        low, high = _interval(drawn.clip(0, 1))
        return Summary(mean, std, len(scores), low, high)

    def difference(self, first: Entry, second: Entry, measure: str) -> Difference:
        """Compare two entries on the same draws."""
        drawn = self._draws(first)[measure] - self._draws(second)[measure]
        mean = self.mean(first, measure) - self.mean(second, measure)
        corrected = _correct_bias(drawn, mean, measure)
        # A draw without any document that differs shows nothing: it counts on both sides.
        sides = np.where(drawn == 0, 0, corrected)
        p = max(two_sided(sides), least_p(self._n_differing(first, second)))
        return Difference(mean, *_interval(corrected.clip(-1, 1)), p=p)

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

    def _n_differing(self, first: Entry, second: Entry) -> int:
        """Count the documents for which the runs of both entries do not all predict one set."""
        both = np.concatenate([self._predictions(first), self._predictions(second)])
        return int((both != both[0]).any(axis=0).sum())

    def _predictions(self, entry: Entry) -> NDArray[np.int64]:
        """Return a number per predicted set, equal for equal sets: runs x documents."""
        if entry not in self._numbers:
            self._numbers[entry] = np.array(
                [[hash(frozenset(row)) for row in run] for run in self._runs[entry]]
            )
        return self._numbers[entry]

    def _draws(self, entry: Entry) -> dict[str, Values]:
        """Return the draws of each measure: the mean over the drawn runs."""
        if entry not in self._drawn:
            runs = self._runs[entry]
            shares = self._documents.draw_runs(entry.system, len(runs))  # runs x draws
            self._drawn[entry] = {
                name: (drawn * shares).sum(axis=0)
                for name, drawn in self._documents.draw(runs).items()
            }
        return self._drawn[entry]


@dataclass(frozen=True)
class _Counts:
    """The counts of a run that draws weight."""

    columns: Floats  # (4, N): F1, is exact, n correct labels, n true + n predicted labels
    missed: Sparse  # labels x documents
    wrong: Sparse


class _Documents:
    """The test documents, and how often each is in each draw.

    Documents are sorted by id, so that the draws do not depend on the order of the records.
    """

    # N documents, R runs, D draws, L labels that occur in some document

    def __init__(self, comparison: Comparison, n_draws: int, seed: int) -> None:
        self.n_draws = n_draws
        self._seed = seed
        self._n_labels = comparison.n_labels
        self._order = sorted(range(len(comparison.ids)), key=comparison.ids.__getitem__)
        self._given = comparison.truth
        self._truth = self._matrix(comparison.truth)
        n = len(comparison.truth)
        counts = np.bincount(self._truth.indices, minlength=self._n_labels)
        self._occurring = np.flatnonzero(counts)
        # A draw may miss all documents of a rare label, whose F1 is then 0. Weight labels by 1 /
        # the chance to be drawn: otherwise draws would be below the score of rare labels.
        chances = 1 - (1 - counts[self._occurring] / n) ** n
        self._label_shares = (1 / (chances * self._n_labels)).astype(np.float32)  # (L,)
        self._kept: list[tuple[Floats, Floats]] | None = None

    def scores(self, predicted: LabelSets) -> dict[str, float]:
        """Measure a run on all documents."""
        scores = evaluate_sets(
            *(indicator_matrix(sets, self._n_labels) for sets in (self._given, predicted))
        )
        return {name: getattr(scores, name) for name in MEASURES}

    def draw(self, runs: Sequence[LabelSets]) -> dict[str, Values]:
        """Measure the runs of an entry on each draw: (R, D) per measure."""
        counted = [self._count(predicted) for predicted in runs]
        columns = np.concatenate([counts.columns for counts in counted])  # (4 R, N)
        drawn: dict[str, list[NDArray[Any]]] = {name: [] for name in MEASURES}
        for weights, twice_true in self._blocks():
            sums = (columns @ weights).reshape(len(runs), 4, -1)
            f1, n_exact, n_correct, n_both = sums.transpose(1, 0, 2)  # each (R, D)
            n = np.float32(weights.shape[0])
            drawn["instance_f1"].append(f1 / n)
            drawn["subset_accuracy"].append(n_exact / n)
            is_empty = n_both == 0
            drawn["micro_f1"].append(np.where(is_empty, 1, 2 * n_correct / (n_both + is_empty)))
            drawn["hamming_loss"].append((n_both - 2 * n_correct) / (n * self._n_labels))
            drawn["label_f1"].append(
                np.stack([self._label_f1(counts, weights, twice_true) for counts in counted])
            )
        return {
            name: np.concatenate(each, axis=1).astype(np.float64) for name, each in drawn.items()
        }

    def _count(self, predicted: LabelSets) -> _Counts:
        sets = self._matrix(predicted)
        correct = self._truth.multiply(sets).tocsr()
        n_correct = np.diff(correct.indptr)
        n_both = np.diff(self._truth.indptr) + np.diff(sets.indptr)
        f1, is_exact = document_f1(self._truth, sets), n_both == 2 * n_correct
        return _Counts(
            columns=np.stack([f1, is_exact, n_correct, n_both]).astype(np.float32),
            missed=self._by_label(self._truth, correct),
            wrong=self._by_label(sets, correct),
        )

    def _label_f1(self, counts: _Counts, weights: Floats, twice_true: Floats) -> Floats:
        """Measure label-F1 on a block of draws, in place: this is most of the work."""
        n_missed = counts.missed @ weights  # (L, D)
        n_either = counts.wrong @ weights
        n_either -= n_missed
        n_either += twice_true
        twice_correct = n_missed
        twice_correct *= -2
        twice_correct += twice_true
        f1 = np.divide(twice_correct, np.maximum(n_either, 1, out=n_either), out=twice_correct)
        label_f1: Floats = self._label_shares @ f1
        return label_f1

    def draw_runs(self, system: str, n_runs: int) -> Values:
        """Return the share of each run of a system in each draw, (R, D)."""
        random = np.random.default_rng([self._seed, 1, zlib.crc32(system.encode())])
        n_taken = max(1, n_runs - 1)
        counts: Values = random.multinomial(n_taken, [1 / n_runs] * n_runs, self.n_draws).T
        return counts / n_taken

    def _blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield blocks of weights, (N, D), and twice the true documents of each label, (L, D).

        Blocks are kept in memory where they are small enough, otherwise computed again per entry.
        """
        if self._kept is not None:
            yield from self._kept
            return
        n = self._truth.shape[0]
        kept: list[tuple[Floats, Floats]] = []
        truth = self._by_label(self._truth, None)
        random = np.random.default_rng([self._seed, 0])
        for start in range(0, self.n_draws, _BLOCK_DRAWS):
            weights = np.empty((n, min(_BLOCK_DRAWS, self.n_draws - start)), dtype=np.float32)
            for draw in range(weights.shape[1]):
                weights[:, draw] = np.bincount(random.integers(n, size=n), minlength=n)
            block = weights, 2 * (truth @ weights)
            if n * self.n_draws <= _KEPT_WEIGHTS:
                kept.append(block)
            yield block
        self._kept = kept or None

    def _matrix(self, sets: LabelSets) -> Sparse:
        return indicator_matrix([sets[document] for document in self._order], self._n_labels)

    def _by_label(self, sets: Sparse, without: Sparse | None) -> Sparse:
        """Return (L, N) counts of the sets, minus those of other sets."""
        counts = sets.astype(np.float32)
        if without is not None:
            counts = (counts - without.astype(np.float32)).tocsr()
        by_label: Sparse = counts.T.tocsr()[self._occurring]
        by_label.eliminate_zeros()
        return by_label


def _correct_bias(drawn: Values, mean: float, measure: str) -> Values:
    """Shift the draws of label-F1 so that their mean is the score on all documents.

    F1 is concave in the few documents of a rare label, so that its draws are lower than the score.
    """
    return drawn + (mean - drawn.mean()) if measure == "label_f1" else drawn


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
