"""The paper's findings on this data: one table with effects, intervals and verdicts."""

# R runs of a system, n documents

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from setrnn.comparison.records import Comparison, LabelSets, Record
from setrnn.comparison.statistics import LEVEL, Bootstrap, Difference, Entry, bootstrap, holm
from setrnn.metrics import MEASURES
from setrnn.report.systems import CLASSICAL, RECURRENT, System, Values, group_by_system
from setrnn.report.table import Cell, Row, Table
from setrnn.report.wording import format_change, format_p, format_score

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not shown"
PAPERS_MEASURES = ("instance_f1", "label_f1")
NEGLIGIBLE = 0.005  # a gain whose interval ends below it does not count as a gain
ENTROPY_ORDER = ("seq2seq-rnn", "vinyals-max", "set-rnn", "vinyals-uniform")


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, and one comparison that it rests on."""

    name: str
    claim: str
    compared: str  # "set-rnn minus sgm"
    measure: str
    difference: Difference  # p is Holm-corrected over the comparisons of the claim
    verdict: str


@dataclass(frozen=True)
class Study:
    """The systems of a comparison that succeeded, and their statistics."""

    comparison: Comparison
    systems: Mapping[str, System]
    bootstrap: Bootstrap

    def own(self, *names: str) -> list[Entry]:
        """Return those of the named systems that are there, each by its own rule."""
        return [Entry(name, self.systems[name].own_rule) for name in names if name in self.systems]

    def compare(self, first: Entry, second: Entry, measure: str) -> Comparing:
        """Compare two entries by a measure."""
        names = [each.system for each in (first, second)]
        if names[0] == names[1]:
            names = [f"{names[0]}: rule {first.rule}", f"rule {second.rule}"]
        found = self.bootstrap.difference(first, second, measure)
        return " minus ".join(names), MEASURES[measure], found

    def compare_with_best(self, own: Entry, rivals: Sequence[Entry], measure: str) -> Comparing:
        """Compare an entry with the best of others; p is Holm-corrected for their number."""
        standing = self.bootstrap.standing([own, *rivals], measure)
        best = self.rank(rivals, measure)[0]
        what, name, found = self.compare(own, best, measure)
        return what, name, replace(found, p=standing.p[best if standing.best == own else own])

    def rank(self, entries: Sequence[Entry], measure: str) -> list[Entry]:
        """Sort entries in descending order of a measure."""
        return sorted(entries, key=lambda entry: -self.bootstrap.mean(entry, measure))


Comparing = tuple[str, str, Difference]  # what is compared, by which measure
Look = Callable[[Study], Iterator[Comparing]]  # yields nothing where a system is missing


def find(comparison: Comparison, records: Sequence[Record], bootstrap: Bootstrap) -> list[Finding]:
    """Test the paper's findings; those about missing systems are left out."""
    systems = {each.name: each for each in group_by_system(comparison, records).all}
    study = Study(comparison, systems, bootstrap)
    findings = []
    for name, (claim, look) in PAPERS_FINDINGS.items():
        compared = list(look(study))
        corrected = holm([found.p for _, _, found in compared])
        for (what, measure, found), p in zip(compared, corrected, strict=True):
            difference = replace(found, p=p)
            verdict = judge(difference, is_gain_denied=name == "set-does-not-help-seq2seq-rnn")
            findings.append(Finding(name, claim, what, measure, difference, verdict))
    return findings


def judge(found: Difference, is_gain_denied: bool = False) -> str:
    """Return the verdict on the claim that a difference is above zero, or that it is not.

    Both need an interval: a gain that is not significant may still be one.
    """
    is_negligible = found.high < NEGLIGIBLE
    if is_gain_denied:
        if is_negligible:
            return HOLDS
        return FAILS if found.p < LEVEL and found.mean >= NEGLIGIBLE else UNDECIDED
    if found.p >= LEVEL or found.mean == 0:
        return UNDECIDED
    if found.mean < 0:
        return FAILS
    return UNDECIDED if is_negligible else HOLDS


def findings_table(findings: Sequence[Finding]) -> Table:
    """Make the table of the paper's findings, one comparison per row."""
    return Table(
        name="findings",
        title="The paper's findings",
        caption=(
            "Whether the paper's findings hold on this data: one comparison per row, each system "
            "by its own rule if none is named. Holds: the difference is above zero, p < .05 "
            "(corrected for the comparisons of a finding by Holm's method), and its 95% interval "
            "does not end below .005. Does not hold: it is below zero, p < .05. Not shown: "
            "neither; the interval gives how large a difference can still be."
        ),
        headers=["comparison", "measure", "difference", "p", "verdict"],
        rows=[_make_row(each) for each in findings],
        row_header="finding",
    )


def _make_row(finding: Finding) -> Row:
    found = finding.difference
    low, high = format_change(found.low), format_change(found.high)
    numbers = {"low": found.low, "high": found.high}
    return Row(
        finding.claim,
        [
            Cell(finding.compared),
            Cell(finding.measure),
            Cell(format_change(found.mean), found.mean, note=f"{low} to {high}", more=numbers),
            Cell(format_p(found.p).removeprefix("p ").removeprefix("= "), found.p),
            Cell(finding.verdict),
        ],
    )


def _compare_set_rnn_with_the_best_other(study: Study) -> Iterator[Comparing]:
    own, others = study.own("set-rnn"), study.own(*(set(RECURRENT) - {"set-rnn"}))
    for measure in PAPERS_MEASURES if own and others else ():
        yield study.compare_with_best(own[0], others, measure)


def _compare_the_median_with_the_best_classical(study: Study) -> Iterator[Comparing]:
    recurrent, classical = study.own(*RECURRENT), study.own(*CLASSICAL)
    for measure in PAPERS_MEASURES if recurrent and classical else ():
        ranked = study.rank(recurrent, measure)
        median = ranked[len(ranked) // 2]  # more than half are as good as this one
        yield study.compare_with_best(median, classical, measure)


def _compare(first: str, second: str) -> Look:
    """Compare two systems, each by its own rule."""

    def look(study: Study) -> Iterator[Comparing]:
        entries = study.own(first, second)
        for measure in PAPERS_MEASURES if len(entries) == 2 else ():
            yield study.compare(entries[0], entries[1], measure)

    return look


def _compare_set_with_sequence(system: str) -> Look:
    """Compare the rules set and sequence of a system."""

    def look(study: Study) -> Iterator[Comparing]:
        rules = Entry(system, "set"), Entry(system, "sequence")
        for measure in PAPERS_MEASURES if {*rules} <= {*study.bootstrap.entries} else ():
            yield study.compare(*rules, measure)

    return look


def _compare_gains_by_size(study: Study) -> Iterator[Comparing]:
    """Compare the gain of the rule set over the rule sequence on larger and smaller true sets."""
    sizes = np.array([len(row) for row in study.comparison.truth])
    if len(np.unique(sizes)) < 2:
        return
    middle = min(int(np.median(sizes)), sizes.max() - 1)
    for name in ("set-rnn", "vinyals-uniform"):
        system = study.systems.get(name)
        if system is not None and system.has("set") and system.has("sequence"):
            gains = system.document_f1("set") - system.document_f1("sequence")
            larger, smaller = (
                np.where(is_kept, gains, np.nan) for is_kept in (sizes > middle, sizes <= middle)
            )
            found = study.bootstrap.compare_means(name, larger, name, smaller)
            what = f"{name}: gain on sets of more than {middle} minus that on others"
            yield what, "instance-F1", found


def _compare_rare_labels(study: Study) -> Iterator[Comparing]:
    """Compare the mean F1 over the rarer half of the labels that occur in test."""
    entries = study.own("set-rnn", "seq2seq-rnn")
    counts = np.asarray(study.comparison.label_counts)
    found = np.unique([label for row in study.comparison.truth for label in row]).astype(int)
    if len(entries) < 2 or len(found) < 2:
        return
    rare = found[counts[found] <= np.quantile(counts[found], 0.5, method="lower")]
    if len(rare) == len(found):  # all labels are equally frequent
        return
    place = {int(label): number for number, label in enumerate(rare)}

    def keep(sets: LabelSets) -> LabelSets:
        return [[place[label] for label in row if label in place] for row in sets]

    kept = replace(
        study.comparison,
        labels=tuple(study.comparison.labels[label] for label in rare),
        label_counts=tuple(int(counts[label]) for label in rare),
        truth=keep(study.comparison.truth),
    )
    runs = [run for each in entries for run in study.systems[each.system].runs]
    draws = bootstrap(kept, [run.with_own_sets(keep) for run in runs])
    what = f"{entries[0].system} minus {entries[1].system}, {len(rare)} rarest labels"
    yield what, MEASURES["label_f1"], draws.difference(entries[0], entries[1], "label_f1")


def _compare_entropies(study: Study) -> Iterator[Comparing]:
    """Compare the entropies on documents with two predicted labels or more in both systems."""
    values = {name: _list_entropies(study.systems.get(name)) for name in ENTROPY_ORDER}
    for second, first in pairwise(ENTROPY_ORDER):
        one, other = values[first], values[second]
        if one is None or other is None:
            return
        is_known = np.isfinite(one).all(axis=0) & np.isfinite(other).all(axis=0)
        if is_known.sum() > 1:
            one, other = (np.where(is_known, each, np.nan) for each in (one, other))
            found = study.bootstrap.compare_means(first, one, second, other)
            yield f"{first} minus {second}", "entropy over orders", found


def _list_entropies(system: System | None) -> Values | None:
    """Return the entropy over the orders of each predicted set, (R, n); NaN where unknown."""
    rows = [] if system is None else [test.order_entropy for test in system.tests]
    return np.array(rows, dtype=np.float64) if rows and None not in rows else None


# By name: the claim, and the function that makes its comparisons.
PAPERS_FINDINGS: dict[str, tuple[str, Look]] = {
    "set-rnn-first": (
        "set-rnn is first among the recurrent systems",
        _compare_set_rnn_with_the_best_other,
    ),
    "recurrent-ahead": (
        "Most recurrent systems are ahead of the best classical one",
        _compare_the_median_with_the_best_classical,
    ),
    "max-needs-a-start": (
        "vinyals-max needs its start from vinyals-uniform",
        _compare("vinyals-max", "vinyals-max-direct"),
    ),
    "set-helps-set-rnn": (
        "Predicting the set instead of the sequence helps set-rnn",
        _compare_set_with_sequence("set-rnn"),
    ),
    "set-helps-vinyals-uniform": (
        "Predicting the set instead of the sequence helps vinyals-uniform",
        _compare_set_with_sequence("vinyals-uniform"),
    ),
    "set-does-not-help-seq2seq-rnn": (
        "Predicting the set does not help seq2seq-rnn (its gain is below "
        f"{format_score(NEGLIGIBLE)})",
        _compare_set_with_sequence("seq2seq-rnn"),
    ),
    "gain-grows-with-size": (
        "The gain of predicting the set grows with the size of the set",
        _compare_gains_by_size,
    ),
    "rare-labels": (
        "set-rnn predicts rare labels better than seq2seq-rnn",
        _compare_rare_labels,
    ),
    "entropy-order": (
        "A set is spread over its orders least in seq2seq-rnn, then in vinyals-max, set-rnn and "
        "vinyals-uniform",
        _compare_entropies,
    ),
}
