"""The findings of the paper, each tested on this data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from setrnn.comparison.statistics import LEVEL, Difference, Entry, holm
from setrnn.metrics import MEASURES
from setrnn.report.evidence import (
    FAILS,
    HOLDS,
    PAPERS_MEASURES,
    UNDECIDED,
    Evidence,
    Look,
    Study,
    compare_entropies,
    compare_gains_by_size,
    compare_rare_labels,
    judge,
)
from setrnn.report.systems import CLASSICAL, RECURRENT
from setrnn.report.wording import (
    format_change,
    format_count,
    format_difference,
    format_p,
    format_score,
    join_names,
)

NEGLIGIBLE = 0.005  # a gain whose interval ends below it does not count as a gain
ENTROPY_ORDER = ("seq2seq-rnn", "vinyals-max", "set-rnn", "vinyals-uniform")


def _compare_set_rnn_with_others(study: Study) -> list[Evidence]:
    others = [each for each in RECURRENT if each != "set-rnn" and study.has(each)]
    if not others or not study.has("set-rnn"):
        return []
    return [_compare_with_best(study, "set-rnn", others, measure) for measure in PAPERS_MEASURES]


def _compare_with_best(study: Study, system: str, others: Sequence[str], measure: str) -> Evidence:
    """Compare a system with the best of the others."""
    own = study.own(system)
    standing = study.bootstrap.standing([own, *map(study.own, others)], measure)
    is_first = standing.best == own
    rival = max(map(study.own, others), key=lambda each: study.bootstrap.mean(each, measure))
    p = standing.p[rival if is_first else own]
    found = study.bootstrap.difference(own, rival, measure)
    place = "first" if is_first else "not first"
    tied = sorted(each.system for each in standing.tied if each not in (own, standing.best))
    text = (
        f"{MEASURES[measure]}: {place}; {study.format_pair(own, rival, measure)}, "
        f"{format_difference(found)}, {format_p(p)}"
    )
    if is_first and tied:
        text += f"; not significantly different from {join_names(tied)}"
    if is_first:
        verdict = HOLDS if standing.stands else UNDECIDED
    else:
        verdict = FAILS if p < LEVEL else UNDECIDED
    return Evidence(text, verdict, found, p)


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
        f"{', '.join(parts)}",
        verdict,
        p=min(corrected),
    )


def _compare_max_with_direct(study: Study) -> list[Evidence]:
    if not study.has("vinyals-max", "vinyals-max-direct"):
        return []
    return study.compare(study.own("vinyals-max"), study.own("vinyals-max-direct"), PAPERS_MEASURES)


def _compare_set_with_sequence(system: str) -> Look:
    def look(study: Study) -> list[Evidence]:
        if not (study.has_rule(system, "set") and study.has_rule(system, "sequence")):
            return []
        found = study.compare(Entry(system, "set"), Entry(system, "sequence"), PAPERS_MEASURES)
        return [_discount_negligible(each) for each in found]

    return look


def _discount_negligible(found: Evidence) -> Evidence:
    """Do not count a gain as a help where its whole interval is negligible."""
    assert found.difference is not None
    if found.verdict == HOLDS and found.difference.high < NEGLIGIBLE:
        return replace(found, verdict=UNDECIDED, text=f"{found.text}, but a negligible gain")
    return found


def _test_that_set_does_not_help(study: Study) -> list[Evidence]:
    """Require a negligible gain: that no gain is shown does not prove that there is none."""
    system = "seq2seq-rnn"
    if not (study.has_rule(system, "set") and study.has_rule(system, "sequence")):
        return []
    found = study.compare(Entry(system, "set"), Entry(system, "sequence"), PAPERS_MEASURES)
    return [replace(each, verdict=_judge_negligible(each.difference, each.p)) for each in found]


def _judge_negligible(found: Difference | None, p: float | None) -> str:
    assert found is not None
    assert p is not None
    if found.high < NEGLIGIBLE:
        return HOLDS
    return FAILS if found.mean >= NEGLIGIBLE and p < LEVEL else UNDECIDED


def _test_rare_labels(study: Study) -> list[Evidence]:
    if not study.has("set-rnn", "seq2seq-rnn"):
        return []
    found = compare_rare_labels(study.comparison, study.runs["set-rnn"], study.runs["seq2seq-rnn"])
    if found is None:
        return []
    each = found.difference
    return [
        Evidence(
            f"mean F1 of the {found.n_labels} rarest labels in test (at most "
            f"{format_count(found.most_documents, 'training document')} each): set-rnn "
            f"{format_score(found.first)}, seq2seq-rnn {format_score(found.second)}, "
            f"{format_difference(each)}, {format_p(each.p)}",
            judge(each.mean, each.p),
            each,
            each.p,
        )
    ]


def _test_entropy_order(study: Study) -> list[Evidence]:
    if not study.has(*ENTROPY_ORDER):
        return []
    pairs = list(zip(ENTROPY_ORDER[1:], ENTROPY_ORDER, strict=False))
    found = [compare_entropies(study.runs[a], study.runs[b]) for a, b in pairs]
    known_pairs = [
        (pair, each) for pair, each in zip(pairs, found, strict=True) if each is not None
    ]
    if len(known_pairs) < len(pairs):
        return []
    corrected = holm([each.p for _, each in known_pairs])
    return [
        Evidence(
            f"{first} minus {second}: {format_difference(each)}, {format_p(p)}",
            judge(each.mean, p),
            each,
            p,
        )
        for ((first, second), each), p in zip(known_pairs, corrected, strict=True)
    ]


def _test_growing_gain(study: Study) -> list[Evidence]:
    found = [
        (system, gain)
        for system in ("set-rnn", "vinyals-uniform")
        if study.has(system)
        and (gain := compare_gains_by_size(study.comparison, study.runs[system])) is not None
    ]
    corrected = holm([gain.growth.p for _, gain in found]) if found else []
    return [
        Evidence(
            f"{system}, instance-F1: {format_change(gain.smaller)} on documents with up to "
            f"{format_count(gain.middle, 'label')}, {format_change(gain.larger)} on documents with "
            f"more, {format_difference(gain.growth)}, {format_p(p)}",
            judge(gain.growth.mean, p),
            gain.growth,
            p,
        )
        for (system, gain), p in zip(found, corrected, strict=True)
    ]


# By name: the claim, and the function that looks for its evidence.
PAPERS_FINDINGS: dict[str, tuple[str, Look]] = {
    "set-rnn-first": (
        "set-rnn is first among the recurrent systems",
        _compare_set_rnn_with_others,
    ),
    "recurrent-ahead": (
        "Most recurrent systems are ahead of the best classical one",
        _compare_recurrent_with_classical,
    ),
    "max-needs-a-start": (
        "vinyals-max needs its start from vinyals-uniform: vinyals-max-direct is behind it",
        _compare_max_with_direct,
    ),
    "set-helps-set-rnn": (
        "Predicting the most probable set instead of the sequence helps set-rnn",
        _compare_set_with_sequence("set-rnn"),
    ),
    "set-helps-vinyals-uniform": (
        "Predicting the most probable set instead of the sequence helps vinyals-uniform",
        _compare_set_with_sequence("vinyals-uniform"),
    ),
    "set-does-not-help-seq2seq-rnn": (
        "Predicting the most probable set instead of the sequence does not help seq2seq-rnn (its "
        f"gain is below {format_score(NEGLIGIBLE)})",
        _test_that_set_does_not_help,
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
