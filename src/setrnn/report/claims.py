"""A claim, what speaks for or against it, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from setrnn.comparison.records import Comparison, Record
from setrnn.comparison.statistics import LEVEL, MEASURES, Bootstrap, Difference, Entry, holm
from setrnn.report import wording
from setrnn.report.numbers import p_value, score

HOLDS, IN_PART, FAILS, UNDECIDED = "holds", "holds in part", "does not hold", "not shown"
PAPERS_MEASURES = ("instance_f1", "label_f1")


@dataclass(frozen=True)
class Evidence:
    """One comparison: its numbers in words, and what it says of the claim."""

    text: str
    verdict: str | None = None  # None: it is only told
    difference: Difference | None = None
    p: float | None = None  # corrected for the comparisons it is one of


@dataclass(frozen=True)
class Finding:
    """A claim, whether it holds on this data, and on what that rests."""

    name: str
    claim: str
    evidence: tuple[Evidence, ...]

    @property
    def verdict(self) -> str | None:
        """Hold what all comparisons show; drop what any contradicts; None is only told."""
        verdicts = [each.verdict for each in self.evidence if each.verdict is not None]
        if not verdicts:
            return None
        if FAILS in verdicts:
            return FAILS
        if all(each == HOLDS for each in verdicts):
            return HOLDS
        return IN_PART if HOLDS in verdicts or IN_PART in verdicts else UNDECIDED


class Evidences:
    """The records and statistics of a comparison, as findings ask for them."""

    def __init__(
        self, comparison: Comparison, records: Sequence[Record], bootstrap: Bootstrap
    ) -> None:
        self.comparison, self.bootstrap = comparison, bootstrap
        self.runs: dict[str, list[Record]] = {}
        for record in records:
            if record.test is not None:
                self.runs.setdefault(record.method, []).append(record)

    def has(self, *methods: str) -> bool:
        """Tell whether all of the systems have runs."""
        return all(method in self.runs for method in methods)

    def own(self, method: str) -> Entry:
        """Return a system with its own rule."""
        return Entry(method, self.runs[method][0].own_rule)

    def has_rule(self, method: str, rule: str) -> bool:
        """Tell whether a system predicted by a rule."""
        return self.has(method) and Entry(method, rule) in set(self.bootstrap.entries)

    def ahead(self, first: Entry, second: Entry, measures: Sequence[str]) -> list[Evidence]:
        """Test whether the first is ahead of the second by each measure."""
        found = [self.bootstrap.difference(first, second, each) for each in measures]
        corrected = holm([each.p for each in found])
        return [
            Evidence(
                f"{MEASURES[measure]}: {self.pair(first, second, measure)}, "
                f"{wording.difference(each)}, {p_value(p)}",
                verdict_of(each.mean, p),
                each,
                p,
            )
            for measure, each, p in zip(measures, found, corrected, strict=True)
        ]

    def pair(self, first: Entry, second: Entry, measure: str) -> str:
        """Write the scores of two."""
        one, other = (self.bootstrap.summary(each, measure).mean for each in (first, second))
        if first.system == second.system:
            return f"{score(other)} → {score(one)}"
        return f"{first.system} {score(one)}, {second.system} {score(other)}"


def verdict_of(mean: float, p: float) -> str:
    """Judge a claim that a difference is above zero."""
    if p >= LEVEL or mean == 0:
        return UNDECIDED
    return HOLDS if mean > 0 else FAILS


Look = Callable[[Evidences], list[Evidence]]  # nothing: the systems are not there
