"""Whether the scores of a comparison are still those of a stored report: `--against`.

A score has drifted if it differs from the stored one by more than .005, and by more than three
standard errors of the difference over seeds; without a second seed, .01 stands for the deviation.
Classical systems have no seeds: .005 alone is their tolerance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setrnn.comparison.records import REPORT
from setrnn.errors import DataError
from setrnn.methods import METHODS
from setrnn.metrics import MEASURES
from setrnn.report.score_tables import RULE_FOR
from setrnn.report.table import Cell, Row, Table
from setrnn.report.wording import format_change, format_score

SUMMARY = "summary.json"
TOLERANCE, N_ERRORS, UNKNOWN_DEVIATION = 0.005, 3, 0.01

Summary = Mapping[str, Any]  # the content of a summary.json


@dataclass(frozen=True)
class Drift:
    """What differs between a comparison and a stored one."""

    table: Table  # all scores of systems that both have
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
    rows, drifted = [], []
    for system, rule, measure in _list_scores(stored):
        after = now["scores"].get(system, {}).get(rule, {}).get(measure)
        if after is None:
            continue
        before = stored["scores"][system][rule][measure]
        allowed = _allow(system, before, after)
        difference = after["mean"] - before["mean"]
        is_drift = abs(difference) > allowed
        texts = [format_score(each["mean"], measure) for each in (before, after)]
        limit = format_score(allowed, measure)
        if is_drift:
            name = f"{system}, {MEASURES[measure]} by {rule}"
            drifted.append(f"{name}: {texts[0]} → {texts[1]} (allowed {limit})")
        cells = [
            Cell(f"{MEASURES[measure]} (rule {rule})"),
            Cell(texts[0], before["mean"]),
            Cell(texts[1], after["mean"]),
            Cell(format_change(difference, measure), difference),
            Cell(limit, allowed),
            Cell("drift" if is_drift else "same"),
        ]
        rows.append(Row(system, cells))
    if not rows:
        raise DataError(
            "The comparison has no system in common with the stored one, which has "
            f"{', '.join(stored['scores'])}. Give another folder to --against."
        )
    return Drift(
        table=Table(
            name="drift",
            title="Drift",
            caption="Each score beside the stored one: the mean over seeds. Drift: a difference "
            f"above {format_score(TOLERANCE)} and above {N_ERRORS} standard errors over seeds.",
            headers=["measure", "stored", "now", "difference", "allowed", "verdict"],
            rows=rows,
        ),
        drifted=drifted,
        settings=_list_different_settings(now, stored),
        missing=[system for system in stored["scores"] if system not in now["scores"]],
    )


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
        pairs += [(rule, measure) for measure, rule in RULE_FOR.items() if rule != own]
        for rule, measure in pairs:
            if measure in by_rule.get(rule, {}):
                yield system, rule, measure


def _allow(system: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    """Return the largest difference that is not a drift."""
    if system in METHODS and METHODS[system].family == "classical":
        return TOLERANCE
    known = [each["std"] for each in (before, after) if each["std"] is not None]
    per_seed = max(known, default=UNKNOWN_DEVIATION)
    error = per_seed * math.sqrt(1 / before["n_seeds"] + 1 / after["n_seeds"])
    return max(TOLERANCE, N_ERRORS * error)


def _list_different_settings(now: Summary, stored: Summary) -> list[str]:
    """List the settings that all systems share, and that differ from the stored ones."""
    values = [
        {
            name: value
            for setup in side.get("setups", {}).values()
            for name, value in setup["common"].items()
        }
        | {"prepared data": side["data_hash"]}
        for side in (stored, now)
    ]
    before, after = values
    return [
        f"{name}: {before.get(name, 'none')} → {after.get(name, 'none')}"
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
