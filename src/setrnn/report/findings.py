"""The findings of a report: the best systems, the paper's findings, and findings beyond it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from setrnn.comparison.power import documents_needed
from setrnn.comparison.records import Comparison, Record
from setrnn.comparison.statistics import LEVEL, Bootstrap, Entry, Standing, holm
from setrnn.metrics import MEASURES
from setrnn.report.evidence import (
    CONFIDENCE,
    FAILS,
    HOLDS,
    NEGLIGIBLE,
    PAPERS_MEASURES,
    TARGET,
    UNDECIDED,
    Evidence,
    Finding,
    Look,
    Study,
    compare_entropies,
    compare_gains_by_size,
    compare_rare_labels,
    find_direction,
    fit_acceptances,
    judge,
    judge_all,
)
from setrnn.report.systems import (
    CLASSICAL,
    RECURRENT,
    find_frontier,
    group_by_system,
    list_prediction_points,
    list_training_points,
)
from setrnn.report.wording import (
    format_change,
    format_count,
    format_difference,
    format_documents,
    format_family,
    format_interval,
    format_p,
    format_score,
    join_names,
)

ENTROPY_ORDER = ("seq2seq-rnn", "vinyals-max", "set-rnn", "vinyals-uniform")


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
    papers, beyond = (
        [Finding(name, claim, tuple(look(study))) for name, (claim, look) in claims.items()]
        for claims in (PAPERS_FINDINGS, BEYOND_FINDINGS)
    )
    return Findings(
        tuple(_describe_best(study)),
        tuple(each for each in papers if each.evidence),
        tuple(each for each in beyond if each.evidence),
        tuple(each.claim for each in papers if not each.evidence),
    )


def _describe_best(study: Study) -> list[str]:
    """Write per measure which system is best, and whether the difference is significant."""
    entries = [study.own(method) for method in study.runs]
    if not entries:
        return []
    sentences = []
    first: dict[str, list[str]] = {}  # measures by the system that is best
    for measure, name in MEASURES.items():
        standing = study.bootstrap.standing(entries, measure)
        first.setdefault(standing.best.system, []).append(name)
        summary = study.bootstrap.summary(standing.best, measure)
        what = f"{name}: {standing.best.system}, {format_interval(summary, measure)}"
        tied = sorted(each.system for each in standing.tied)
        family = format_family(len(standing.p))
        if len(entries) == 1:
            sentences.append(f"{what}; there is no other system to compare it with.")
        elif tied:
            others = f"{len(tied)} others" if len(tied) > 4 else join_names(tied)
            least = min(standing.p[each] for each in standing.tied)
            bound = format_p(least) if len(tied) == 1 else f"all p ≥ {format_score(least)}"
            sentences.append(
                f"{what}; not significantly different from {others} ({bound}; {family}). "
                f"{_describe_power(study, standing, measure)}"
            )
        else:
            most = max(standing.p.values())
            bound = format_p(most) if most < 0.001 else f"all p ≤ {format_score(most)}"
            sentences.append(
                f"{what}; significantly better than every other system ({bound}; {family})."
            )
    if len(first) > 1:
        parts = [f"{system} by {join_names(names)}" for system, names in first.items()]
        sentences.append(f"All measures: mixed. The best means are those of {'; '.join(parts)}.")
    return sentences


def _describe_power(study: Study, standing: Standing, measure: str) -> str:
    """Write how many test documents would separate the best from those that are now level."""
    needed = {
        each.system: documents_needed(
            study.bootstrap, standing.best, each, measure, len(standing.p)
        )
        for each in standing.tied
    }
    names = sorted(needed, key=lambda name: (needed[name].n_documents, name))
    ends = [
        f"{format_documents(needed[name].n_documents)} ({name})"
        for name in dict.fromkeys((names[0], names[-1]))
    ]
    seeds = ", and many more seeds" if any(each.needs_seeds for each in needed.values()) else ""
    return f"To separate them would take {' to '.join(ends)} test documents{seeds}."


def _compare_set_rnn_with_others(study: Study) -> list[Evidence]:
    others = [each for each in RECURRENT if each != "set-rnn" and study.has(each)]
    if not others or not study.has("set-rnn"):
        return []
    own, rivals = study.own("set-rnn"), [study.own(each) for each in others]
    return [_compare_with_best(study, own, rivals, measure) for measure in PAPERS_MEASURES]


def _compare_with_best(study: Study, own: Entry, rivals: Sequence[Entry], measure: str) -> Evidence:
    """Compare a system with the best of its rivals."""
    standing = study.bootstrap.standing([own, *rivals], measure)
    is_first = standing.best == own
    rival = max(rivals, key=lambda each: study.bootstrap.mean(each, measure))
    p = standing.p[rival if is_first else own]
    found = study.bootstrap.difference(own, rival, measure)
    tied = sorted(each.system for each in standing.tied if each not in (own, standing.best))
    place = "first" if is_first else "not first"
    text = (
        f"{MEASURES[measure]}: {place}; {study.format_pair(own, rival, measure)}, "
        f"{format_difference(found)}, {format_p(p, len(standing.p))}"
    )
    if is_first and tied:
        text += f"; not significantly different from {join_names(tied)}"
    verdict = HOLDS if is_first and standing.stands else UNDECIDED
    if not is_first and p < LEVEL:
        verdict = FAILS
    return Evidence(text, verdict, found, p, find_direction(found))


def _compare_recurrent_with_classical(study: Study) -> list[Evidence]:
    recurrent = [each for each in RECURRENT if study.has(each)]
    classical = [study.own(each) for each in CLASSICAL if study.has(each)]
    if not recurrent or not classical:
        return []
    return [_count_ahead(study, recurrent, classical, measure) for measure in PAPERS_MEASURES]


def _count_ahead(
    study: Study, recurrent: Sequence[str], classical: Sequence[Entry], measure: str
) -> Evidence:
    """Count the recurrent systems that are ahead of, or behind, the best classical system."""
    best = max(classical, key=lambda each: study.bootstrap.mean(each, measure))
    pairs = [study.bootstrap.difference(study.own(each), best, measure) for each in recurrent]
    corrected = holm([each.p for each in pairs])
    groups: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNDECIDED: []}
    for system, each, p in zip(recurrent, pairs, corrected, strict=True):
        numbers = f"{system} {format_change(each.mean)}, {format_p(p)}"
        groups[judge(each.mean, p)].append(numbers)
    n_ahead, n_behind = len(groups[HOLDS]), len(groups[FAILS])
    verdict = UNDECIDED
    if n_behind > n_ahead:
        verdict = FAILS
    elif 2 * n_ahead > len(recurrent):
        verdict = HOLDS
    words = {HOLDS: "ahead", FAILS: "behind", UNDECIDED: "not significantly different"}
    parts = [
        f"{len(numbers)} of {len(recurrent)} {words[each]}"
        + (f" ({'; '.join(numbers)})" if numbers else "")
        for each, numbers in groups.items()
        if numbers or each == HOLDS
    ]
    value = format_score(study.bootstrap.mean(best, measure))
    return Evidence(
        f"{MEASURES[measure]}, against {best.system}, the best classical system ({value}): "
        f"{', '.join(parts)}; p: {format_family(len(recurrent))}",
        verdict,
        p=min(corrected),
    )


def _compare(first: str, second: str) -> Look:
    """Compare two systems, each by its own rule."""

    def look(study: Study) -> list[Evidence]:
        if not study.has(first, second):
            return []
        return study.compare(study.own(first), study.own(second), PAPERS_MEASURES)

    return look


def _compare_set_with_sequence(system: str, adjust: Callable[[Evidence], Evidence]) -> Look:
    """Compare the rules set and sequence of a system."""

    def look(study: Study) -> list[Evidence]:
        if not (study.has_rule(system, "set") and study.has_rule(system, "sequence")):
            return []
        found = study.compare(Entry(system, "set"), Entry(system, "sequence"), PAPERS_MEASURES)
        return [adjust(each) for each in found]

    return look


def _discount_negligible(found: Evidence) -> Evidence:
    """Do not count a gain as a help where its whole interval is negligible."""
    assert found.difference is not None
    if found.verdict == HOLDS and found.difference.high < NEGLIGIBLE:
        return replace(found, verdict=UNDECIDED, text=f"{found.text}, but a negligible gain")
    return found


def _require_negligible(found: Evidence) -> Evidence:
    """Require a negligible gain: that no gain is shown does not prove that there is none."""
    assert found.difference is not None
    assert found.p is not None
    if found.difference.high < NEGLIGIBLE:
        return replace(found, verdict=HOLDS, direction=None)
    is_gain = found.difference.mean >= NEGLIGIBLE and found.p < LEVEL
    return replace(found, verdict=FAILS if is_gain else UNDECIDED, direction=None)


def _test_rare_labels(study: Study) -> list[Evidence]:
    if not study.has("set-rnn", "seq2seq-rnn"):
        return []
    found = compare_rare_labels(study.comparison, study.runs["set-rnn"], study.runs["seq2seq-rnn"])
    if found is None:
        return []
    words = (
        f"mean F1 of the {found.n_labels} rarest labels in test (at most "
        f"{format_count(found.most_documents, 'training document')} each): set-rnn "
        f"{format_score(found.first)}, seq2seq-rnn {format_score(found.second)}, "
    )
    return judge_all([(words, found.difference)])


def _test_entropy_order(study: Study) -> list[Evidence]:
    if not study.has(*ENTROPY_ORDER):
        return []
    found = []
    for second, first in pairwise(ENTROPY_ORDER):
        difference = compare_entropies(study.runs[first], study.runs[second])
        if difference is None:
            return []
        found.append((f"{first} minus {second}: ", difference))
    return judge_all(found)


def _test_growing_gain(study: Study) -> list[Evidence]:
    found = []
    for system in filter(study.has, ("set-rnn", "vinyals-uniform")):
        gain = compare_gains_by_size(study.comparison, study.runs[system])
        if gain is not None:
            words = (
                f"{system}, instance-F1: {format_change(gain.smaller)} on documents with up to "
                f"{format_count(gain.middle, 'label')}, {format_change(gain.larger)} on documents "
                "with more, "
            )
            found.append((words, gain.growth))
    return judge_all(found)


def _test_rule_f1(study: Study) -> list[Evidence]:
    found = []
    for system in study.runs:
        pair = Entry(system, "f1"), study.own(system)
        if study.has_rule(system, "f1") and pair[0] != pair[1]:
            words = f"{system}: {study.format_pair(*pair, 'instance_f1')}, "
            found.append((words, study.bootstrap.difference(*pair, "instance_f1")))
    return judge_all(found)


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
        if (found := fit_acceptances(study.comparison, records))
    }
    means = {
        system: sum(each.share for each in found) / len(found) for system, found in shares.items()
    }
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
PAPERS_FINDINGS: dict[str, tuple[str, Look]] = {
    "set-rnn-first": ("set-rnn is first among the recurrent systems", _compare_set_rnn_with_others),
    "recurrent-ahead": (
        "Most recurrent systems are ahead of the best classical one",
        _compare_recurrent_with_classical,
    ),
    "max-needs-a-start": (
        "vinyals-max needs its start from vinyals-uniform: vinyals-max-direct is behind it",
        _compare("vinyals-max", "vinyals-max-direct"),
    ),
    "set-helps-set-rnn": (
        "Predicting the most probable set instead of the sequence helps set-rnn",
        _compare_set_with_sequence("set-rnn", _discount_negligible),
    ),
    "set-helps-vinyals-uniform": (
        "Predicting the most probable set instead of the sequence helps vinyals-uniform",
        _compare_set_with_sequence("vinyals-uniform", _discount_negligible),
    ),
    "set-does-not-help-seq2seq-rnn": (
        "Predicting the most probable set instead of the sequence does not help seq2seq-rnn (its "
        f"gain is below {format_score(NEGLIGIBLE)})",
        _compare_set_with_sequence("seq2seq-rnn", _require_negligible),
    ),
    "gain-grows-with-size": (
        "The gain of predicting the set grows with the size of the set",
        _test_growing_gain,
    ),
    "rare-labels": ("set-rnn predicts rare labels better than seq2seq-rnn", _test_rare_labels),
    "entropy-order": (
        "The probability of a set is spread over its orders least in seq2seq-rnn, then in "
        "vinyals-max, then in set-rnn, and most in vinyals-uniform",
        _test_entropy_order,
    ),
}
BEYOND_FINDINGS: dict[str, tuple[str, Look]] = {
    "rule-f1": ("Rule f1 gives a better instance-F1 than each system's own rule", _test_rule_f1),
    "exact-ahead": ("set-rnn-exact is ahead of set-rnn", _compare("set-rnn-exact", "set-rnn")),
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
