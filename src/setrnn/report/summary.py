"""summary.json: all numbers of a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from setrnn import __version__
from setrnn.comparison.records import Record
from setrnn.comparison.statistics import LOG_LIKELIHOOD
from setrnn.config import flatten
from setrnn.metrics import MEASURES
from setrnn.report.findings import Finding
from setrnn.report.study import Study

SUMMARY = "summary.json"
SETTINGS = {
    "treatment": "How the runs were treated",
    "environment": "Where they ran",
    "config": "Settings",
}
VARYING = ("seed", "time", "started", "ended", "finished", "date")  # different in every run


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
