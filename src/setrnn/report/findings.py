"""The paper's findings on this data: one table with effects, intervals and verdicts."""

# R runs of a system, n documents

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from setrnn.comparison.records import LabelSets
from setrnn.comparison.statistics import LEVEL, Difference, Entry, holm
from setrnn.metrics import MEASURES
from setrnn.report.study import CLASSICAL, RECURRENT, Study, Values
from setrnn.report.table import Column, Estimate, Table
from setrnn.report.wording import format_change, format_p_value, format_score

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not shown"
PAPERS_MEASURES = ("instance_f1", "label_f1")
NEGLIGIBLE = 0.005  # a gain whose interval ends below it does not count as a gain
ENTROPY_ORDER = ("seq2seq-rnn", "vinyals-max", "set-rnn", "vinyals-uniform")

Comparing = tuple[str, str, Difference]  # what is compared, by which measure
Look = Callable[[Study], Iterator[Comparing]]  # yields nothing where a system is missing


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, and one comparison that it rests on."""

    name: str
    claim: str
    compared: str  # "set-rnn minus sgm"
    measure: str
    difference: Difference  # p is Holm-corrected over the comparisons of the claim
    verdict: str


def find(study: Study) -> list[Finding]:
    """Test the paper's findings; those about missing systems are left out."""
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

    def difference(finding: Finding) -> Estimate:
        found = finding.difference
        return Estimate(found.mean, low=found.low, high=found.high)

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
        columns=[
            Column("finding", lambda each: str(each.claim)),
            Column("comparison", lambda each: str(each.compared)),
            Column("measure", lambda each: str(each.measure)),
            Column("difference", difference, format_change),
            Column("p", lambda each: float(each.difference.p), format_p_value),
            Column("verdict", lambda each: str(each.verdict)),
        ],
        rows=findings,
    )


def _compare(study: Study, first: Entry, second: Entry, measure: str) -> Comparing:
    names = [each.system for each in (first, second)]
    if names[0] == names[1]:
        names = [f"{names[0]}: rule {first.rule}", f"rule {second.rule}"]
    found = study.draws.difference(first, second, measure)
    return " minus ".join(names), MEASURES[measure], found


def _compare_with_best(
    study: Study, own: Entry, rivals: Sequence[Entry], measure: str
) -> Comparing:
    """Compare an entry with the best of others; p is Holm-corrected for their number."""
    standing = study.draws.standing([own, *rivals], measure)
    best = max(rivals, key=lambda entry: study.draws.mean(entry, measure))
    what, name, found = _compare(study, own, best, measure)
    return what, name, replace(found, p=standing.p[best if standing.best == own else own])


def _compare_set_rnn_with_the_best_other(study: Study) -> Iterator[Comparing]:
    own = study.own("set-rnn")
    others = study.own(*(name for name in RECURRENT if name != "set-rnn"))
    for measure in PAPERS_MEASURES if own and others else ():
        yield _compare_with_best(study, own["set-rnn"], list(others.values()), measure)


def _compare_the_median_with_the_best_classical(study: Study) -> Iterator[Comparing]:
    recurrent, classical = study.own(*RECURRENT), study.own(*CLASSICAL)
    for measure in PAPERS_MEASURES if recurrent and classical else ():
        ranked = sorted(recurrent.values(), key=lambda each: -study.draws.mean(each, measure))
        median = ranked[len(ranked) // 2]  # more than half are as good as this one
        yield _compare_with_best(study, median, list(classical.values()), measure)


def _compare_systems(first: str, second: str) -> Look:
    """Compare two systems, each by its own rule."""

    def look(study: Study) -> Iterator[Comparing]:
        entries = study.own(first, second)
        for measure in PAPERS_MEASURES if len(entries) == 2 else ():
            yield _compare(study, entries[first], entries[second], measure)

    return look


def _compare_set_with_sequence(system: str) -> Look:
    """Compare the rules set and sequence of a system."""

    def look(study: Study) -> Iterator[Comparing]:
        rules = Entry(system, "set"), Entry(system, "sequence")
        for measure in PAPERS_MEASURES if {*rules} <= {*study.draws.entries} else ():
            yield _compare(study, *rules, measure)

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
            found = study.draws.compare_means(name, larger, name, smaller)
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

    kept = study.with_sets(
        keep,
        labels=tuple(study.comparison.labels[label] for label in rare),
        label_counts=tuple(int(counts[label]) for label in rare),
    )
    first, second = entries.values()
    what, measure, difference = _compare(kept, first, second, "label_f1")
    yield f"{what}, {len(rare)} rarest labels", measure, difference


def _compare_entropies(study: Study) -> Iterator[Comparing]:
    """Compare the entropies on documents with two predicted labels or more in both systems."""
    values = {name: _list_entropies(study, name) for name in ENTROPY_ORDER}
    for second, first in pairwise(ENTROPY_ORDER):
        one, other = values[first], values[second]
        if one is None or other is None:
            return
        is_known = np.isfinite(one).all(axis=0) & np.isfinite(other).all(axis=0)
        if is_known.sum() > 1:
            one, other = (np.where(is_known, each, np.nan) for each in (one, other))
            found = study.draws.compare_means(first, one, second, other)
            yield f"{first} minus {second}", "entropy over orders", found


def _list_entropies(study: Study, name: str) -> Values | None:
    """Return the entropy over the orders of each predicted set, (R, n); NaN where unknown."""
    tests = study.systems[name].tests if name in study.systems else ()
    rows = [test.order_entropy for test in tests]
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
        _compare_systems("vinyals-max", "vinyals-max-direct"),
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
