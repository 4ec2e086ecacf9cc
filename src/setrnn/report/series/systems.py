"""The runs that ended, by system, and how good each of their predictions is."""

# R runs of a system, n documents, L labels

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setrnn.comparison.records import Comparison, Record, TestResults
from setrnn.methods import METHODS
from setrnn.metrics import document_f1, evaluate_labels, indicator_matrix

if TYPE_CHECKING:
    from setrnn.metrics import Sparse

Values = npt.NDArray[np.float64]

CLASSICAL = tuple(name for name, each in METHODS.items() if not each.is_network)
SYSTEMS = tuple(METHODS)  # in the order of the paper's tables, then what is beyond it


@dataclass(frozen=True, eq=False)
class System:
    """All runs of one system that ended."""

    name: str
    runs: Sequence[Record]
    tests: Sequence[TestResults]  # one a run
    truth: Sparse
    _found: dict[tuple[str, str], Values] = field(default_factory=dict)

    @property
    def is_added(self) -> bool:
        """Whether its predictions came from elsewhere."""
        return self.runs[0].is_added

    @property
    def own_rule(self) -> str:
        """The rule the paper predicts by."""
        return self.runs[0].own_rule

    def has(self, rule: str) -> bool:
        """Tell whether all its runs predicted by this rule."""
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
        """Tell which documents have exactly the true set, by run: (R, n)."""
        return np.equal(self.document_f1(rule), 1)

    def _measure(self, of: str, rule: str) -> Values:
        if (of, rule) not in self._found:
            rows = []
            for test in self.tests:
                predicted = indicator_matrix(test.predicted[rule], self.truth.shape[1])
                if of == "document":
                    rows.append(document_f1(self.truth, predicted))
                else:
                    rows.append(evaluate_labels(self.truth, predicted).f1)
            self._found[of, rule] = np.array(rows)
        return self._found[of, rule]


@dataclass(frozen=True)
class Systems:
    """What figures are made of: the data, and its systems in the order of the paper."""

    comparison: Comparison
    all: Sequence[System]

    @property
    def n_documents(self) -> int:
        """Count the test documents."""
        return len(self.comparison.truth)

    @property
    def over_seeds(self) -> str:
        """Say what a number of a system is."""
        return "mean over seeds" if any(len(each.runs) > 1 for each in self.all) else "one seed"


def systems_of(comparison: Comparison, records: Sequence[Record]) -> Systems:
    """Sort runs by system; those that failed are left out."""
    truth = indicator_matrix(comparison.truth, comparison.n_labels)
    ended: dict[str, list[Record]] = {}
    for record in records:
        if record.test is not None and record.own_rule in record.test.predicted:
            ended.setdefault(record.method, []).append(record)
    known = {name: place for place, name in enumerate(SYSTEMS)}
    names = sorted(ended, key=lambda name: (known.get(name, len(known)), name))
    systems = []
    for name in names:
        runs = sorted(ended[name], key=lambda record: record.seed)
        tests = [record.test for record in runs if record.test is not None]
        systems.append(System(name, runs, tests, truth))
    return Systems(comparison, systems)
