"""summary.json: all numbers of a report; and whether they are still those of a stored one.

A score has drifted if it differs from the stored one by more than .005, and by more than three
standard errors of the difference over seeds; without a second seed, .01 stands for the deviation.
Classical systems have no seeds: .005 alone is their tolerance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setrnn import __version__
from setrnn.comparison.records import REPORT, Record
from setrnn.comparison.statistics import LOG_LIKELIHOOD
from setrnn.config import flatten
from setrnn.errors import DataError
from setrnn.metrics import MEASURES
from setrnn.report.findings import Finding
from setrnn.report.study import CLASSICAL, Study
from setrnn.report.wording import format_score
from setrnn.systems.rules import rule_for

SUMMARY = "summary.json"
TOLERANCE, N_ERRORS, UNKNOWN_DEVIATION = 0.005, 3, 0.01
SETTINGS = {
    "treatment": "How the runs were treated",
    "environment": "Where they ran",
    "config": "Settings",
}
VARYING = ("seed", "time", "started", "ended", "finished", "date")  # different in every run

Summary = Mapping[str, Any]  # the content of a summary.json


def split_settings(records: Sequence[Record], field: str) -> dict[str, Any]:
    """Separate the settings that are equal in all runs (common) from those that are differing.

    `field` is config, treatment or environment. Different values of one system are listed
    together, by the name of the setting, then by value; a system without a setting is left out.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for record in records:
        for name, value in {} if record.is_added else flatten(getattr(record, field)).items():
            values = found.setdefault(name, {}).setdefault(record.method, [])
            if (text := _format_setting(value)) not in values:
                values.append(text)
    common: dict[str, str] = {}
    differing: dict[str, dict[str, list[str]]] = {}
    for name, by_system in found.items():
        distinct = {" / ".join(values) for values in by_system.values()}
        if name.rpartition(".")[2] in VARYING:
            continue
        if len(distinct) == 1 and all(len(values) == 1 for values in by_system.values()):
            common[name] = distinct.pop()
        else:
            for system, values in by_system.items():
                differing.setdefault(name, {}).setdefault(" / ".join(values), []).append(system)
    return {"common": common, "differing": differing}


def _format_setting(value: object) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def summarise(
    study: Study, findings: Sequence[Finding] = (), caveats: Sequence[str] = ()
) -> dict[str, Any]:
    """Return all of a report as plain values: scores, intervals, p-values, costs, findings."""
    comparison, draws, own = study.comparison, study.draws, study.own()
    entries = list(own.values())
    scores: dict[str, dict[str, Any]] = {}
    for entry in draws.entries:
        scores.setdefault(entry.system, {})[entry.rule] = {
            measure: {
                **asdict(draws.summary(entry, measure)),
                "by_seed": draws.scores(entry, measure),
            }
            for measure in MEASURES
        }
    return {
        "setrnn": __version__,
        "data": comparison.data,
        "data_hash": comparison.data_hash,
        "n_documents": dict(comparison.n_documents),
        "n_labels": comparison.n_labels,
        "n_unseen_sets": len(comparison.unseen_sets),
        "mean_words": comparison.mean_words,
        "n_draws": draws.n_draws,
        "own_rules": {name: entry.rule for name, entry in own.items()},
        "scores": scores,
        LOG_LIKELIHOOD: {
            name: {
                **asdict(draws.summary(entry, LOG_LIKELIHOOD)),
                "by_seed": study.systems[name].recorded(LOG_LIKELIHOOD),
            }
            for name, entry in own.items()
            if draws.has(entry, LOG_LIKELIHOOD)
        },
        "differences": {
            measure: [
                {"first": first.system, "second": second.system, **asdict(difference)}
                for (first, second), difference in draws.pairs(entries, measure).items()
            ]
            for measure in MEASURES
        },
        "costs": {each.name: asdict(each.costs) for each in study.records if each.costs},
        "failures": {each.name: asdict(each.failure) for each in study.records if each.failure},
        "synthetic": comparison.synthetic,
        "valid_is_cut": comparison.valid_is_cut,
        "commands": list(comparison.commands),
        "setups": {field: split_settings(study.records, field) for field in SETTINGS},
        "papers_findings": [asdict(each) for each in findings],
        "caveats": list(caveats),
    }


@dataclass(frozen=True)
class Drift:
    """What differs between a comparison and a stored one."""

    n_scores: int  # those that both have
    drifted: Sequence[str]  # the scores that have drifted, in words
    settings: Sequence[str]  # the settings and versions that differ
    missing: Sequence[str]  # systems of the stored comparison alone


def find_drift(now: Summary, stored: Summary) -> Drift:
    """Compare the summary of a comparison with a stored one.

    Example:
        >>> def summary(f1):
        ...     scores = {"br": {"set": {"instance_f1": {"mean": f1, "std": None, "n_seeds": 1}}}}
        ...     return {"n_documents": {"test": 90}, "n_labels": 4, "data_hash": "0",
        ...             "own_rules": {"br": "set"}, "scores": scores}
        >>> find_drift(summary(0.71), summary(0.7)).drifted
        ['br, instance-F1 by set: .700 → .710 (allowed .005)']
    """
    for name in ("n_documents", "n_labels"):
        if now[name] != stored[name]:
            raise DataError(
                f"The stored comparison is on other data: {name} is {stored[name]} there, and "
                f"{now[name]} here. Give the stored results of the same data."
            )
    n_scores, drifted = 0, []
    for system, rule, measure in _list_scores(stored):
        after = now["scores"].get(system, {}).get(rule, {}).get(measure)
        if after is None:
            continue
        n_scores += 1
        before = stored["scores"][system][rule][measure]
        allowed = _allow(system, before, after)
        if abs(after["mean"] - before["mean"]) > allowed:
            old, new, limit = (
                format_score(each, measure) for each in (before["mean"], after["mean"], allowed)
            )
            name = f"{system}, {MEASURES[measure]} by {rule}"
            drifted.append(f"{name}: {old} → {new} (allowed {limit})")
    if not n_scores:
        raise DataError(
            "The comparison has no system in common with the stored one, which has "
            f"{', '.join(stored['scores'])}. Give another folder to --against."
        )
    missing = [system for system in stored["scores"] if system not in now["scores"]]
    return Drift(n_scores, drifted, _list_different_settings(now, stored), missing)


def read_summary(folder: Path) -> Summary:
    """Read the summary of a report; `folder` is the report, its comparison, or a stored copy."""
    files = [folder, folder / SUMMARY, folder / REPORT / SUMMARY]
    file = next((each for each in files if each.is_file()), None)
    if file is None:
        raise DataError(
            f"{folder} holds no {SUMMARY}. Give the folder of a report, or of a comparison that "
            "'setrnn report' was run on."
        )
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not JSON. Give the folder that holds {SUMMARY}.") from error
    needed = {"data_hash", "n_documents", "n_labels", "own_rules", "scores"}
    if not isinstance(summary, dict) or not needed <= summary.keys():
        raise DataError(f"{file} is not the summary of a comparison. Make it by 'setrnn report'.")
    return summary


def _list_scores(summary: Summary) -> Iterator[tuple[str, str, str]]:
    """Yield the scores of the report's main tables: by the own rule, and by that of the measure."""
    for system, by_rule in summary["scores"].items():
        own = summary["own_rules"].get(system)
        pairs = [(own, measure) for measure in MEASURES]
        pairs += [(rule_for(each), each) for each in MEASURES if rule_for(each) != own]
        for rule, measure in pairs:
            if measure in by_rule.get(rule, {}):
                yield system, rule, measure


def _allow(system: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    """Return the largest difference that is not a drift."""
    if system in CLASSICAL:
        return TOLERANCE
    known = [each["std"] for each in (before, after) if each["std"] is not None]
    per_seed = max(known, default=UNKNOWN_DEVIATION)
    error = per_seed * math.sqrt(1 / before["n_seeds"] + 1 / after["n_seeds"])
    return max(TOLERANCE, N_ERRORS * error)


def _list_different_settings(now: Summary, stored: Summary) -> list[str]:
    """List the settings that all systems share, and that differ from the stored ones."""
    before, after = (
        {
            name: value
            for setup in side.get("setups", {}).values()
            for name, value in setup["common"].items()
        }
        | {"prepared data": side["data_hash"]}
        for side in (stored, now)
    )
    return [
        f"{name}: {before.get(name, 'none')} → {after.get(name, 'none')}"
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
