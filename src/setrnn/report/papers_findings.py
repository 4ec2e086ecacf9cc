"""The findings of the paper, each as a test of this data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from setrnn.comparison.statistics import LEVEL, MEASURES, Difference, Entry, holm
from setrnn.report import evidence, wording
from setrnn.report.claims import (
    FAILS,
    HOLDS,
    PAPERS_MEASURES,
    UNDECIDED,
    Evidence,
    Evidences,
    Look,
    verdict_of,
)
from setrnn.report.numbers import change, p_value, score
from setrnn.report.series.systems import CLASSICAL

NEGLIGIBLE = 0.005  # a gain that is surely below it is none
RECURRENT = (
    "seq2seq-rnn",
    "vinyals-uniform",
    "vinyals-sample",
    "vinyals-max",
    "vinyals-max-direct",
    "sgm",
    "set-rnn",
)
ENTROPY_ORDER = ("seq2seq-rnn", "vinyals-max", "set-rnn", "vinyals-uniform")


def _set_rnn_first(known: Evidences) -> list[Evidence]:
    others = [each for each in RECURRENT if each != "set-rnn" and known.has(each)]
    if not others or not known.has("set-rnn"):
        return []
    return [_first(known, "set-rnn", others, measure) for measure in PAPERS_MEASURES]


def _first(known: Evidences, system: str, others: Sequence[str], measure: str) -> Evidence:
    """Test a system against the best of the others, or against the one that beats it."""
    own = known.own(system)
    standing = known.bootstrap.standing([own, *map(known.own, others)], measure)
    is_first = standing.best == own
    if is_first:
        rival = min(
            map(known.own, others),
            key=lambda each: -known.bootstrap.summary(each, measure).mean,
        )
    else:
        rival = standing.best
    p = standing.p[rival if is_first else own]
    found = known.bootstrap.difference(own, rival, measure)
    place = "first" if is_first else "not first"
    tied = sorted(each.system for each in standing.tied if each not in (own, standing.best))
    text = (
        f"{MEASURES[measure]}: {place}; {known.pair(own, rival, measure)}, "
        f"{wording.difference(found)}, {p_value(p)}"
    )
    if is_first and tied:
        text += f"; not told apart from {wording.listed(tied)}"
    if is_first:
        verdict = HOLDS if standing.stands else UNDECIDED
    else:
        verdict = FAILS if p < LEVEL else UNDECIDED
    return Evidence(text, verdict, found, p)


def _recurrent_ahead(known: Evidences) -> list[Evidence]:
    recurrent = [each for each in RECURRENT if known.has(each)]
    classical = [known.own(each) for each in CLASSICAL if known.has(each)]
    if not recurrent or not classical:
        return []
    return [_most_ahead(known, recurrent, classical, measure) for measure in PAPERS_MEASURES]


def _most_ahead(
    known: Evidences, recurrent: Sequence[str], classical: Sequence[Entry], measure: str
) -> Evidence:
    """Count who is told apart from the best classical system."""
    best = max(classical, key=lambda each: known.bootstrap.mean(each, measure))
    pairs = [known.bootstrap.difference(known.own(each), best, measure) for each in recurrent]
    corrected = holm([each.p for each in pairs])
    groups: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNDECIDED: []}
    for system, each, p in zip(recurrent, pairs, corrected, strict=True):
        told = f"{system} {change(each.mean)}, {p_value(p)}"
        groups[verdict_of(each.mean, p)].append(told)
    n_ahead, n_behind = len(groups[HOLDS]), len(groups[FAILS])
    verdict = UNDECIDED
    if n_behind > n_ahead:
        verdict = FAILS
    elif 2 * n_ahead > len(recurrent):
        verdict = HOLDS
    words = {HOLDS: "ahead", FAILS: "behind", UNDECIDED: "not told apart"}
    parts = [
        f"{len(told)} of {len(recurrent)} {words[each]} ({'; '.join(told)})"
        for each, told in groups.items()
        if told
    ]
    value = score(known.bootstrap.mean(best, measure))
    return Evidence(
        f"{MEASURES[measure]}, against {best.system}, the best classical system ({value}): "
        f"{', '.join(parts)}",
        verdict,
        p=min(corrected),
    )


def _max_needs_a_start(known: Evidences) -> list[Evidence]:
    if not known.has("vinyals-max", "vinyals-max-direct"):
        return []
    return known.ahead(known.own("vinyals-max"), known.own("vinyals-max-direct"), PAPERS_MEASURES)


def _set_helps(system: str) -> Look:
    def look(known: Evidences) -> list[Evidence]:
        if not (known.has_rule(system, "set") and known.has_rule(system, "sequence")):
            return []
        found = known.ahead(Entry(system, "set"), Entry(system, "sequence"), PAPERS_MEASURES)
        return [_if_it_counts(each) for each in found]

    return look


def _if_it_counts(found: Evidence) -> Evidence:
    """Take back that it helps where the gain is surely negligible."""
    assert found.difference is not None
    if found.verdict == HOLDS and found.difference.high < NEGLIGIBLE:
        return replace(found, verdict=UNDECIDED, text=f"{found.text}, but hardly any gain")
    return found


def _set_does_not_help(known: Evidences) -> list[Evidence]:
    """Hold it where the gain is surely negligible: a gain not shown is no proof of none."""
    system = "seq2seq-rnn"
    if not (known.has_rule(system, "set") and known.has_rule(system, "sequence")):
        return []
    found = known.ahead(Entry(system, "set"), Entry(system, "sequence"), PAPERS_MEASURES)
    return [replace(each, verdict=_is_negligible(each.difference, each.p)) for each in found]


def _is_negligible(found: Difference | None, p: float | None) -> str:
    assert found is not None
    assert p is not None
    if found.high < NEGLIGIBLE:
        return HOLDS
    return FAILS if found.mean >= NEGLIGIBLE and p < LEVEL else UNDECIDED


def _rare_labels(known: Evidences) -> list[Evidence]:
    if not known.has("set-rnn", "seq2seq-rnn"):
        return []
    found = evidence.rare_labels(known.comparison, known.runs["set-rnn"], known.runs["seq2seq-rnn"])
    if found is None:
        return []
    each = found.difference
    return [
        Evidence(
            f"mean F1 of the {found.n_labels} rarest labels that test has (at most "
            f"{wording.counted(found.most_documents, 'training document')} each): set-rnn "
            f"{score(found.first)}, seq2seq-rnn {score(found.second)}, "
            f"{wording.difference(each)}, {p_value(each.p)}",
            verdict_of(each.mean, each.p),
            each,
            each.p,
        )
    ]


def _entropy_order(known: Evidences) -> list[Evidence]:
    if not known.has(*ENTROPY_ORDER):
        return []
    pairs = list(zip(ENTROPY_ORDER[1:], ENTROPY_ORDER, strict=False))
    found = [evidence.entropy_difference(known.runs[a], known.runs[b]) for a, b in pairs]
    known_pairs = [
        (pair, each) for pair, each in zip(pairs, found, strict=True) if each is not None
    ]
    if len(known_pairs) < len(pairs):
        return []
    corrected = holm([each.p for _, each in known_pairs])
    return [
        Evidence(
            f"{first} less {second}: {wording.difference(each)}, {p_value(p)}",
            verdict_of(each.mean, p),
            each,
            p,
        )
        for ((first, second), each), p in zip(known_pairs, corrected, strict=True)
    ]


def _gain_grows(known: Evidences) -> list[Evidence]:
    found = [
        (system, gain)
        for system in ("set-rnn", "vinyals-uniform")
        if known.has(system)
        and (gain := evidence.gain_by_size(known.comparison, known.runs[system])) is not None
    ]
    corrected = holm([gain.growth.p for _, gain in found]) if found else []
    return [
        Evidence(
            f"{system}, instance-F1: {change(gain.smaller)} on documents with up to "
            f"{wording.counted(gain.middle, 'label')}, {change(gain.larger)} on those with more, "
            f"{wording.difference(gain.growth)}, {p_value(p)}",
            verdict_of(gain.growth.mean, p),
            gain.growth,
            p,
        )
        for (system, gain), p in zip(found, corrected, strict=True)
    ]


PAPERS_FINDINGS: dict[str, tuple[str, Look]] = {
    "set-rnn-first": ("set-rnn is first among the recurrent systems", _set_rnn_first),
    "recurrent-ahead": (
        "Most recurrent systems are ahead of the best classical one",
        _recurrent_ahead,
    ),
    "max-needs-a-start": (
        "vinyals-max needs its start from vinyals-uniform: vinyals-max-direct is behind it",
        _max_needs_a_start,
    ),
    "set-helps-set-rnn": (
        "Predicting the most probable set, not the sequence, helps set-rnn",
        _set_helps("set-rnn"),
    ),
    "set-helps-vinyals-uniform": (
        "Predicting the most probable set, not the sequence, helps vinyals-uniform",
        _set_helps("vinyals-uniform"),
    ),
    "set-does-not-help-seq2seq-rnn": (
        f"Predicting the most probable set does not help seq2seq-rnn (a gain below "
        f"{score(NEGLIGIBLE)})",
        _set_does_not_help,
    ),
    "gain-grows-with-size": (
        "What predicting the set gains grows with the size of the set",
        _gain_grows,
    ),
    "rare-labels": ("set-rnn predicts rare labels better than seq2seq-rnn", _rare_labels),
    "entropy-order": (
        "Probability spreads over the orders of a set least in seq2seq-rnn, then vinyals-max, "
        "then set-rnn, most in vinyals-uniform",
        _entropy_order,
    ),
}
