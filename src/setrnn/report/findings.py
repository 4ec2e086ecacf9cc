"""What the numbers say: who is best, which of the paper's findings hold, what lies beyond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setrnn.comparison.records import Comparison, Record
from setrnn.comparison.statistics import MEASURES, Bootstrap
from setrnn.report import wording
from setrnn.report.beyond_findings import BEYOND_FINDINGS
from setrnn.report.claims import Evidences, Finding
from setrnn.report.numbers import p_value, score
from setrnn.report.papers_findings import PAPERS_FINDINGS


@dataclass(frozen=True)
class Findings:
    """All that is found, in the order of the page."""

    best: tuple[str, ...]  # a sentence a measure
    papers: tuple[Finding, ...]
    beyond: tuple[Finding, ...]
    untested: tuple[str, ...]  # claims whose systems are not there


def find(comparison: Comparison, records: Sequence[Record], bootstrap: Bootstrap) -> Findings:
    """Draw all findings from the numbers; those whose systems are missing are named."""
    known = Evidences(comparison, records, bootstrap)
    papers, untested = [], []
    for name, (claim, look) in PAPERS_FINDINGS.items():
        found = look(known)
        if found:
            papers.append(Finding(name, claim, tuple(found)))
        else:
            untested.append(claim)
    beyond = [
        Finding(name, claim, tuple(found))
        for name, (claim, look) in BEYOND_FINDINGS.items()
        if (found := look(known))
    ]
    return Findings(tuple(_best(known)), tuple(papers), tuple(beyond), tuple(untested))


def _best(known: Evidences) -> list[str]:
    """Say of each measure who is best, and whether it stands."""
    entries = [known.own(method) for method in known.runs]
    if not entries:
        return []
    sentences = []
    for measure, name in MEASURES.items():
        standing = known.bootstrap.standing(entries, measure)
        best = standing.best.system
        value = wording.interval(known.bootstrap.summary(standing.best, measure), measure)
        what = f"{name}: {best}, {value}"
        tied = sorted(each.system for each in standing.tied if each != standing.best)
        if len(entries) == 1:
            sentences.append(f"{what}; there is no other system to compare it with.")
        elif tied:
            others = f"{len(tied)} others" if len(tied) > 4 else wording.listed(tied)
            least = min(standing.p[each] for each in standing.tied if each != standing.best)
            sentences.append(
                f"{what}; not told apart from {others} ({_smallest(least, len(tied))})."
            )
        else:
            most = max(p for each, p in standing.p.items() if each != standing.best)
            sentences.append(f"{what}; ahead of every other system ({_largest(most)}).")
    return sentences


def _smallest(p: float, n: int) -> str:
    return p_value(p) if n == 1 else f"all p ≥ {score(p)}"


def _largest(p: float) -> str:
    return p_value(p) if p < 0.001 else f"all p ≤ {score(p)}"
