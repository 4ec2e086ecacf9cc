"""The systems of a comparison: their order, their runs, and the quality of each prediction."""

# R runs of a system, n documents, L labels

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import Comparison, Record, TestResults, order_systems
from setrnn.methods import METHODS
from setrnn.metrics import document_f1, f1_by_label, indicator_matrix

if TYPE_CHECKING:
    from setrnn.metrics import Sparse

Values = npt.NDArray[np.float64]

CLASSICAL = tuple(name for name, method in METHODS.items() if method.family == "classical")
# The paper's recurrent systems.
RECURRENT = tuple(
    name for name, method in METHODS.items() if method.is_network and method.is_in_paper
)
PROBABILITY_RULE = "set"
QUALITY_RULE = "f1"  # for instance-F1


@dataclass(frozen=True, eq=False)
class System:
    """All runs of one system that succeeded."""

    name: str
    runs: Sequence[Record]
    tests: Sequence[TestResults]  # one per run
    truth: Sparse
    _measured: dict[tuple[str, str], Values] = field(default_factory=dict)

    @property
    def is_added(self) -> bool:
        """Whether its predictions were made elsewhere."""
        return self.runs[0].is_added

    @property
    def own_rule(self) -> str:
        """The rule that the paper predicts by."""
        return self.runs[0].own_rule

    def has(self, rule: str) -> bool:
        """Return whether all runs predicted by this rule."""
        return all(rule in test.predicted for test in self.tests)

    def document_f1(self, rule: str) -> Values:
        """Return the F1 of each document, by run: (R, n)."""
        return self._measure("document", rule)

    def label_f1(self, rule: str) -> Values:
        """Return the F1 of each label, by run: (R, L)."""
        return self._measure("label", rule)

    def instance_f1(self, rule: str) -> Values:
        """Return instance-F1, by run: (R,)."""
        return np.asarray(self.document_f1(rule).mean(axis=1))

    def is_right(self, rule: str) -> npt.NDArray[np.bool_]:
        """Return which documents have exactly the true set, by run: (R, n)."""
        return np.equal(self.document_f1(rule), 1)

    def probabilities(self, is_raw: bool = False) -> tuple[Values, npt.NDArray[np.bool_]] | None:
        """Return the probability of each predicted set and whether it is right, both (R, n).

        The sets are those of rule `set`, or of the own rule where that is the only one. None where
        a probability is unknown.
        """
        rule = PROBABILITY_RULE if self.has(PROBABILITY_RULE) else self.own_rule
        rows: list[Sequence[float]] = []
        for test in self.tests:
            row = (test.raw_probability if is_raw else test.probability).get(rule)
            if row is None or len(row) != self.truth.shape[0]:
                return None
            rows.append(row)
        probs = np.array(rows, dtype=np.float64)  # None becomes NaN
        return (probs, self.is_right(rule)) if np.isfinite(probs).all() else None

    def training_seconds(self) -> float | None:
        """Return the mean training time; None where it was not measured."""
        times = [run.costs.training_seconds for run in self.runs if run.costs]
        return float(np.mean(times)) if times else None

    def documents_per_second(self, rule: str) -> float | None:
        """Return the mean prediction speed by a rule; None where it was not measured."""
        speeds = []
        for run in self.runs:
            measured = run.scores.get("test", {}).get(rule, {}).get("documents_per_second")
            if rule == self.own_rule and run.costs:
                speeds.append(run.costs.prediction_documents_per_second)
            elif measured:
                speeds.append(float(measured))
        return float(np.mean(speeds)) if speeds else None

    def _measure(self, of: str, rule: str) -> Values:
        if (of, rule) not in self._measured:
            rows = []
            for test in self.tests:
                predicted = indicator_matrix(test.predicted[rule], self.truth.shape[1])
                if of == "document":
                    rows.append(document_f1(self.truth, predicted))
                else:
                    rows.append(f1_by_label(self.truth, predicted))
            self._measured[of, rule] = np.array(rows)
        return self._measured[of, rule]


@dataclass(frozen=True)
class Systems:
    """The data of a comparison and its systems, in the order of the paper."""

    comparison: Comparison
    all: Sequence[System]

    @property
    def n_documents(self) -> int:
        """The number of test documents."""
        return len(self.comparison.truth)

    @property
    def over_seeds(self) -> str:
        """What the number of a system is: a mean over seeds, or one seed."""
        return "mean over seeds" if any(len(each.runs) > 1 for each in self.all) else "one seed"


@dataclass(frozen=True)
class Point:
    """The quality and the cost of a system by one rule."""

    system: str
    rule: str
    seconds: float  # of training, or of predicting one document
    quality: float  # instance-F1, mean over seeds
    is_own: bool  # whether the rule is the system's own


def list_training_points(systems: Systems) -> list[Point]:
    """List quality and training time of each system, by its own rule and by rule f1."""
    return _list_points(systems, lambda system, rule: system.training_seconds())


def list_prediction_points(systems: Systems) -> list[Point]:
    """List quality and prediction time of each system, by its own rule and by rule f1."""

    def seconds_per_document(system: System, rule: str) -> float | None:
        speed = system.documents_per_second(rule)
        return 1 / speed if speed else None

    return _list_points(systems, seconds_per_document)


def _list_points(
    systems: Systems, measure_seconds: Callable[[System, str], float | None]
) -> list[Point]:
    points = []
    for system in systems.all:
        for rule in dict.fromkeys((system.own_rule, QUALITY_RULE)):
            seconds = measure_seconds(system, rule) if system.has(rule) else None
            if seconds is not None and seconds > 0 and np.isfinite(seconds):
                quality = float(system.instance_f1(rule).mean())
                points.append(Point(system.name, rule, seconds, quality, rule == system.own_rule))
    return points


def find_frontier(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other beats in both cost and quality, the cheapest first."""
    best = float("-inf")
    frontier = []
    # Of equal cost, the best comes first: it beats the others.
    for point in sorted(points, key=lambda point: (point.seconds, -point.quality)):
        if point.quality > best:
            best = point.quality
            frontier.append(point)
    return frontier


def group_by_system(comparison: Comparison, records: Sequence[Record]) -> Systems:
    """Group runs by system; runs that failed are left out."""
    truth = indicator_matrix(comparison.truth, comparison.n_labels)
    succeeded: dict[str, list[Record]] = {}
    for record in records:
        if record.test is not None and record.own_rule in record.test.predicted:
            succeeded.setdefault(record.method, []).append(record)
    systems = []
    for name in order_systems(records):
        if name in succeeded:
            runs = sorted(succeeded[name], key=lambda record: record.seed)
            tests = [record.test for record in runs if record.test is not None]
            systems.append(System(name, runs, tests, truth))
    return Systems(comparison, systems)
