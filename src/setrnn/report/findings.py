"""The findings of a report: the best systems, the paper's findings, and findings beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setrnn.comparison.records import Comparison, Record
from setrnn.comparison.statistics import Bootstrap, Entry, holm
from setrnn.metrics import MEASURES
from setrnn.report.evidence import (
    CONFIDENCE,
    PAPERS_MEASURES,
    TARGET,
    Evidence,
    Finding,
    Look,
    Study,
    accepted_shares,
    judge,
)
from setrnn.report.papers_findings import PAPERS_FINDINGS
from setrnn.report.systems import (
    find_frontier,
    group_by_system,
    list_prediction_points,
    list_training_points,
)
from setrnn.report.wording import (
    format_difference,
    format_interval,
    format_p,
    format_score,
    join_names,
)


@dataclass(frozen=True)
class Findings:
    """All findings, in the order of the page."""

    best: tuple[str, ...]  # one sentence per measure
    papers: tuple[Finding, ...]
    beyond: tuple[Finding, ...]
    untested: tuple[str, ...]  # claims about systems that are missing


def find(comparison: Comparison, records: Sequence[Record], bootstrap: Bootstrap) -> Findings:
    """Collect all findings; claims about missing systems are listed as untested."""
    study = Study(comparison, records, bootstrap)
    papers, untested = [], []
    for name, (claim, look) in PAPERS_FINDINGS.items():
        found = look(study)
        if found:
            papers.append(Finding(name, claim, tuple(found)))
        else:
            untested.append(claim)
    beyond = [
        Finding(name, claim, tuple(found))
        for name, (claim, look) in BEYOND_FINDINGS.items()
        if (found := look(study))
    ]
    return Findings(tuple(_describe_best(study)), tuple(papers), tuple(beyond), tuple(untested))


def _describe_best(study: Study) -> list[str]:
    """Write per measure which system is best, and whether the difference is significant."""
    entries = [study.own(method) for method in study.runs]
    if not entries:
        return []
    sentences = []
    for measure, name in MEASURES.items():
        standing = study.bootstrap.standing(entries, measure)
        summary = study.bootstrap.summary(standing.best, measure)
        what = f"{name}: {standing.best.system}, {format_interval(summary, measure)}"
        tied = sorted(each.system for each in standing.tied)
        if len(entries) == 1:
            sentences.append(f"{what}; there is no other system to compare it with.")
        elif tied:
            others = f"{len(tied)} others" if len(tied) > 4 else join_names(tied)
            least = min(standing.p[each] for each in standing.tied)
            bound = format_p(least) if len(tied) == 1 else f"all p ≥ {format_score(least)}"
            sentences.append(f"{what}; not significantly different from {others} ({bound}).")
        else:
            most = max(standing.p.values())
            bound = format_p(most) if most < 0.001 else f"all p ≤ {format_score(most)}"
            sentences.append(f"{what}; significantly better than every other system ({bound}).")
    return sentences


def _test_rule_f1(study: Study) -> list[Evidence]:
    systems = [
        each for each in study.runs if study.has_rule(each, "f1") and study.own(each).rule != "f1"
    ]
    if not systems:
        return []
    pairs = [(Entry(each, "f1"), study.own(each)) for each in systems]
    gains = [study.bootstrap.difference(*pair, "instance_f1") for pair in pairs]
    corrected = holm([each.p for each in gains])
    return [
        Evidence(
            f"{pair[0].system}: {study.format_pair(*pair, 'instance_f1')}, "
            f"{format_difference(gain)}, {format_p(p)}",
            judge(gain.mean, p),
            gain,
            p,
        )
        for pair, gain, p in zip(pairs, gains, corrected, strict=True)
    ]


def _compare_exact_with_set_rnn(study: Study) -> list[Evidence]:
    if not study.has("set-rnn-exact", "set-rnn"):
        return []
    return study.compare(study.own("set-rnn-exact"), study.own("set-rnn"), PAPERS_MEASURES)


def _list_frontier(study: Study) -> list[Evidence]:
    """List the systems that no other beats in both cost and quality, as in the figures."""
    systems = group_by_system(study.comparison, study.records)
    found = []
    for what, points in (
        ("training time", list_training_points(systems)),
        ("prediction speed", list_prediction_points(systems)),
    ):
        if len({point.system for point in points}) < 2:
            return []
        names = [
            f"{point.system} by rule {point.rule} ({format_score(point.quality)})"
            for point in find_frontier(points)
        ]
        found.append(Evidence(f"instance-F1 against {what}, fastest first: {join_names(names)}"))
    return found


def _list_accepted(study: Study) -> list[Evidence]:
    shares = {
        system: found
        for system, records in study.runs.items()
        if (found := accepted_shares(study.comparison, records))
    }
    means = {system: sum(found) / len(found) for system, found in shares.items()}
    ranked = sorted(means, key=lambda each: means[each], reverse=True)
    if not ranked:
        return []
    some = [f"{each} {means[each]:.0%}" for each in ranked if means[each] > 0]
    none = [each for each in ranked if means[each] == 0]
    if not some:
        return [Evidence("none: no system is right often enough on its most probable documents")]
    text = f"{', '.join(some)} of the documents"
    return [Evidence(text + (f"; none for {join_names(none)}" if none else ""))]


# By name: the claim, and the function that looks for its evidence.
BEYOND_FINDINGS: dict[str, tuple[str, Look]] = {
    "rule-f1": (
        "Rule f1 gives a better instance-F1 than each system's own rule",
        _test_rule_f1,
    ),
    "exact-ahead": ("set-rnn-exact is ahead of set-rnn", _compare_exact_with_set_rnn),
    "frontier": (
        "Systems that no other beats in both quality and speed, by their own rules and by rule f1",
        _list_frontier,
    ),
    "acceptance": (
        "Predictions that can be accepted without review: those with the highest calibrated "
        f"probability, of which {TARGET:.0%} are right with {CONFIDENCE:.0%} confidence (the "
        "threshold is chosen on the same test documents)",
        _list_accepted,
    ),
}
