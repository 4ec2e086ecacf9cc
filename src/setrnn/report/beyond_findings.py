"""What this data says beyond the paper: rule f1, set-rnn-exact, costs, acceptance."""

from __future__ import annotations

from collections.abc import Sequence

from setrnn.comparison.records import Record
from setrnn.comparison.statistics import Entry, holm
from setrnn.report import evidence, wording
from setrnn.report.claims import PAPERS_MEASURES, Evidence, Evidences, Look, verdict_of
from setrnn.report.numbers import p_value, score
from setrnn.report.series.frontier import frontier


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
    """Name who is on the frontier, by the same points as in the figures."""
    told = []
    for what, cost in (("training time", _training), ("prediction speed", _prediction)):
        points = [
            (system, rule, seconds, known.bootstrap.mean(Entry(system, rule), "instance_f1"))
            for system, records in known.runs.items()
            for rule in dict.fromkeys((known.own(system).rule, "f1"))
            if known.has_rule(system, rule) and (seconds := cost(records, rule))
        ]
        if len({system for system, *_ in points}) < 2:
            return []
        places = frontier([point[2] for point in points], [point[3] for point in points])
        names = [
            f"{system} by rule {rule} ({score(quality)})"
            for system, rule, _, quality in (points[place] for place in places)
        ]
        told.append(Evidence(f"instance-F1 against {what}, fastest first: {wording.listed(names)}"))
    return told


def _training(records: Sequence[Record], rule: str) -> float | None:
    """Return the mean time of training."""
    return _mean([record.costs.training_seconds for record in records if record.costs])


def _prediction(records: Sequence[Record], rule: str) -> float | None:
    """Return the time that predicting a document takes."""
    speeds = []
    for record in records:
        measured = record.scores.get("test", {}).get(rule, {}).get("documents_per_second")
        if rule == record.own_rule and record.costs:
            speeds.append(record.costs.prediction_documents_per_second)
        elif measured:
            speeds.append(float(measured))
    speed = _mean(speeds)
    return 1 / speed if speed else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


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
    "frontier": (
        "On the frontier, by own rules and rule f1: none is both better and faster",
        _frontier,
    ),
    "acceptance": (
        f"Predictions that need no second look: accepted by their calibrated probability, "
        f"{evidence.TARGET:.0%} of them right, with {evidence.CONFIDENCE:.0%} confidence (the "
        "threshold is chosen on these same documents)",
        _acceptance,
    ),
}
