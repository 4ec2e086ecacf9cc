"""What this data says beyond the paper: rule f1, set-rnn-exact, costs, acceptance."""

from __future__ import annotations

from setrnn.compare.statistics import Entry, holm
from setrnn.report import evidence, wording
from setrnn.report.claims import PAPERS_MEASURES, Evidence, Evidences, Look, verdict_of
from setrnn.report.numbers import p_value, score


def _rule_f1(known: Evidences) -> list[Evidence]:
    systems = [
        each for each in known.runs if known.has_rule(each, "f1") and known.own(each).rule != "f1"
    ]
    if not systems:
        return []
    gains = [
        known.bootstrap.difference(Entry(each, "f1"), known.own(each), "instance_f1")
        for each in systems
    ]
    corrected = holm([each.p for each in gains])
    return [
        Evidence(
            f"{system}: {known.pair(Entry(system, 'f1'), known.own(system), 'instance_f1')}, "
            f"{wording.difference(gain)}, {p_value(p)}",
            verdict_of(gain.mean, p),
            gain,
            p,
        )
        for system, gain, p in zip(systems, gains, corrected, strict=True)
    ]


def _exact(known: Evidences) -> list[Evidence]:
    if not known.has("set-rnn-exact", "set-rnn"):
        return []
    return known.ahead(known.own("set-rnn-exact"), known.own("set-rnn"), PAPERS_MEASURES)


def _frontier(known: Evidences) -> list[Evidence]:
    costs = {
        system: [record.costs for record in records if record.costs is not None]
        for system, records in known.runs.items()
    }
    costs = {system: each for system, each in costs.items() if each}
    if len(costs) < 2:
        return []
    quality = {
        system: known.bootstrap.summary(known.own(system), "instance_f1").mean for system in costs
    }
    training = {
        system: (quality[system], -sum(each.training_seconds for each in found) / len(found))
        for system, found in costs.items()
    }
    speed = {
        system: (
            quality[system],
            sum(each.prediction_documents_per_second for each in found) / len(found),
        )
        for system, found in costs.items()
    }
    told = []
    for what, points in (("training time", training), ("prediction speed", speed)):
        best = sorted(evidence.frontier(points), key=lambda each: points[each][1], reverse=True)
        told.append(
            Evidence(
                f"instance-F1 against {what}, fastest first: "
                + wording.listed([f"{each} ({score(quality[each])})" for each in best])
            )
        )
    return told


def _acceptance(known: Evidences) -> list[Evidence]:
    shares = {
        system: found
        for system, records in known.runs.items()
        if (found := evidence.accepted_share(known.comparison, records))
    }
    means = {system: sum(found) / len(found) for system, found in shares.items()}
    ranked = sorted(means, key=lambda each: means[each], reverse=True)
    if not ranked:
        return []
    if means[ranked[0]] == 0:
        return [Evidence("none: no system has enough documents it is sure and right of")]
    told = [f"{each} {means[each]:.0%}" for each in ranked if means[each] > 0]
    none = [each for each in ranked if means[each] == 0]
    text = f"{', '.join(told)} of the documents"
    return [Evidence(text + (f"; none for {wording.listed(none)}" if none else ""))]


BEYOND_FINDINGS: dict[str, tuple[str, Look]] = {
    "rule-f1": (
        "Rule f1 gives a better instance-F1 than each system's own rule",
        _rule_f1,
    ),
    "exact-ahead": ("set-rnn-exact is ahead of set-rnn", _exact),
    "frontier": ("On the frontier: no other system is both better and faster", _frontier),
    "acceptance": (
        f"Predictions that need no second look: accepted by their calibrated probability, "
        f"{evidence.TARGET:.0%} of them right, with {evidence.CONFIDENCE:.0%} confidence",
        _acceptance,
    ),
}
