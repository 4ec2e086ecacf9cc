"""The systems of a comparison and their statistics: what tables and figures are made from."""

# R runs of a system, n documents, L labels

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import Comparison, LabelSets, Record, TestResults, order_systems
from setrnn.comparison.statistics import DRAWS, Bootstrap, Entry
from setrnn.methods import METHODS
from setrnn.metrics import document_f1, f1_by_label, indicator_matrix
from setrnn.systems.rules import rule_for

if TYPE_CHECKING:
    from setrnn.metrics import Sparse

Values = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CLASSICAL = tuple(name for name, method in METHODS.items() if method.family == "classical")
# The paper's recurrent systems.
RECURRENT = tuple(
    name for name, method in METHODS.items() if method.is_network and method.is_in_paper
)


@dataclass(frozen=True, eq=False)
class System:
    """All runs of one system that succeeded, in the order of their seeds."""

    runs: list[Record]
    truth: Sparse
    _measured: dict[tuple[str, str], Values] = field(default_factory=dict)

    @property
    def tests(self) -> list[TestResults]:
        """The predictions of each run."""
        return [run.test for run in self.runs if run.test is not None]

    @property
    def own_rule(self) -> str:
        """The rule that the paper predicts by."""
        return self.runs[0].own_rule

    @property
    def probability_rule(self) -> str:
        """The rule whose sets have the probabilities that are judged: `set`, or the only one."""
        return "set" if self.has("set") else self.own_rule

    def has(self, rule: str) -> bool:
        """Return whether all runs predicted by this rule."""
        return all(rule in test.predicted for test in self.tests)

    def document_f1(self, rule: str) -> Values:
        """Return the F1 of each document, by run: (R, n)."""
        return self._measure("document", rule)

    def label_f1(self, rule: str) -> Values:
        """Return the F1 of each label, by run: (R, L)."""
        return self._measure("label", rule)

    def probabilities(self) -> tuple[Values, Bools] | None:
        """Return the probability of each predicted set and whether it is right, both (R, n).

        None where a probability is unknown.
        """
        rule = self.probability_rule
        rows = [test.probability.get(rule, ()) for test in self.tests]
        if any(len(row) != self.truth.shape[0] for row in rows):
            return None
        probs = np.array(rows, dtype=np.float64)  # None becomes NaN
        is_right = np.equal(self.document_f1(rule), 1)
        return (probs, is_right) if probs.size and np.isfinite(probs).all() else None

    def recorded(self, score: str, rule: str = "") -> list[float]:
        """Return a score of the runs by a rule, the own one if none is given, where recorded."""
        rows = [run.scores.get("test", {}).get(rule or self.own_rule, {}) for run in self.runs]
        return [float(row[score]) for row in rows if row.get(score) is not None]

    def cost(self, name: str) -> list[float]:
        """Return a cost of the runs, where it was measured; `best_epoch` is one too."""
        values = [
            getattr(run if name == "best_epoch" else run.costs, name, None) for run in self.runs
        ]
        return [float(value) for value in values if value is not None]

    def _measure(self, of: str, rule: str) -> Values:
        measure = document_f1 if of == "document" else f1_by_label
        if (of, rule) not in self._measured:
            sets = [
                indicator_matrix(each.predicted[rule], self.truth.shape[1]) for each in self.tests
            ]
            self._measured[of, rule] = np.array([measure(self.truth, each) for each in sets])
        return self._measured[of, rule]


@dataclass(frozen=True, eq=False)
class Study:
    """A comparison, its records, its systems and their statistics."""

    comparison: Comparison
    records: Sequence[Record]  # in the order of the paper's systems, then of the seeds
    systems: Mapping[str, System]  # those with a run that succeeded
    draws: Bootstrap

    @classmethod
    def of(cls, comparison: Comparison, records: Sequence[Record], n_draws: int = DRAWS) -> Study:
        """Group the runs by system."""
        names = order_systems(records)
        ordered = sorted(records, key=lambda each: (names.index(each.method), each.seed))
        truth = indicator_matrix(comparison.truth, comparison.n_labels)
        systems: dict[str, System] = {}
        for record in ordered:
            if record.test is not None and record.own_rule in record.test.predicted:
                systems.setdefault(record.method, System([], truth)).runs.append(record)
        return cls(comparison, ordered, systems, Bootstrap(comparison, ordered, n_draws))

    @property
    def names(self) -> list[str]:
        """All systems, with those whose runs all failed."""
        return list(dict.fromkeys(record.method for record in self.records))

    @property
    def n_documents(self) -> int:
        """The number of test documents."""
        return len(self.comparison.truth)

    @property
    def over_seeds(self) -> str:
        """What the number of a system is: a mean over seeds, or one seed."""
        many = any(len(each.runs) > 1 for each in self.systems.values())
        return "mean over seeds" if many else "one seed"

    def own(self, *names: str) -> dict[str, Entry]:
        """Return systems by their own rule: all, or those of the named ones that are there."""
        chosen = names or tuple(self.systems)
        return {
            name: Entry(name, self.systems[name].own_rule)
            for name in chosen
            if name in self.systems
        }

    def by_rule_for(self, measure: str) -> dict[str, Entry]:
        """Return each system by the rule for a measure, or by the rule of added predictions."""
        rule = rule_for(measure)
        return {
            name: Entry(name, rule if system.has(rule) else system.own_rule)
            for name, system in self.systems.items()
            if system.has(rule) or system.runs[0].is_added
        }

    def with_sets(self, change: Callable[[LabelSets], LabelSets], **changes: Any) -> Study:  # noqa: ANN401 (fields of Comparison)
        """Return the study with changed sets, true and predicted; each system by its own rule."""
        comparison = replace(self.comparison, truth=change(self.comparison.truth), **changes)
        return Study.of(comparison, [each.with_own_sets(change) for each in self.records])
