"""Compare the scores of a comparison with those of a stored one: which have drifted, and why.

Both sides are the `summary.json` of a report, so that neither needs its records or models. A score
has drifted if it differs from the stored one by more than

    the larger of  4 s √(1/n + 1/m)  and  e / 4

where n and m are the numbers of seeds, s is the spread over seeds, and e is the standard error over
test documents. With few seeds, s is uncertain: it is the larger of the system's own standard
deviation (of both comparisons together) and the median of those of all systems. A classical system
has no seeds, and s is 0. Where no system has two seeds, s is taken as e / 2. If nothing but the
seeds differs, 1 to 6 scores of 1,000 exceed this by chance, with three seeds on both sides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from setrnn.comparison.records import REPORT
from setrnn.errors import DataError
from setrnn.methods import METHODS
from setrnn.metrics import MEASURES
from setrnn.report.score_tables import RULE_FOR
from setrnn.report.table import Cell, Row, Table
from setrnn.report.wording import format_change, format_count, format_score, join_names

SUMMARY = "summary.json"
N_DEVIATIONS = 4
SHARE_OF_ERROR = 0.25
UNKNOWN_SPREAD = 0.5  # in standard errors over documents
WIDTH_95 = 3.92  # of a 95% interval, in standard errors
SAME, WITHIN, DRIFT = "same", "within", "drift"

Summary = Mapping[str, Any]  # the content of a summary.json


@dataclass(frozen=True)
class Score:
    """A score of one side: the mean over its seeds."""

    mean: float
    std: float | None  # None where there is one seed
    n_seeds: int
    error: float  # the standard error over test documents

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Score:
        """Read the score of a summary."""
        error = (values["high"] - values["low"]) / WIDTH_95
        return cls(values["mean"], values["std"], values["n_seeds"], error)

    def write(self, measure: str) -> str:
        """Return the mean and the standard deviation as text."""
        text = format_score(self.mean, measure)
        return text if self.std is None else f"{text} ± {format_score(self.std, measure)}"


@dataclass(frozen=True)
class Change:
    """One score of a system, stored and now."""

    system: str
    rule: str
    measure: str
    stored: Score
    now: Score
    allowed: float  # the largest difference that is not a drift

    @property
    def difference(self) -> float:
        """The score now minus the stored one."""
        return self.now.mean - self.stored.mean

    @property
    def verdict(self) -> str:
        """Whether the score is the same, differs within what is allowed, or has drifted."""
        if math.isclose(self.now.mean, self.stored.mean, abs_tol=1e-9):
            return SAME
        return DRIFT if abs(self.difference) > self.allowed else WITHIN

    def __str__(self) -> str:
        stored, now = (each.write(self.measure) for each in (self.stored, self.now))
        difference = format_change(self.difference, self.measure)
        allowed = format_score(self.allowed, self.measure)
        return (
            f"{self.system}, {MEASURES[self.measure]} by {self.rule}: {stored} → {now} "
            f"({difference}; allowed {allowed})"
        )


@dataclass(frozen=True)
class SettingChange:
    """A setting, a version or a treatment that differs from that of the stored comparison."""

    name: str
    stored: str
    now: str
    systems: tuple[str, ...]  # empty: all systems

    def __str__(self) -> str:
        where = f" ({join_names(self.systems)})" if self.systems else ""
        return f"{self.name}: {self.stored} → {self.now}{where}"


@dataclass(frozen=True)
class Drift:
    """What differs between a comparison and a stored one."""

    data: str
    changes: Sequence[Change]
    settings: Sequence[SettingChange]
    missing: Sequence[str]  # systems of the stored comparison alone
    notes: Sequence[str]

    @property
    def drifted(self) -> list[Change]:
        """The scores that have drifted."""
        return [each for each in self.changes if each.verdict == DRIFT]

    @property
    def sentence(self) -> str:
        """How many scores are the same, within the spread, and drifted."""
        verdicts = [each.verdict for each in self.changes]
        n_systems = len({each.system for each in self.changes})
        return (
            f"{format_count(len(verdicts), 'score')} of {format_count(n_systems, 'system')} on "
            f"{self.data}: {verdicts.count(SAME)} the same, {verdicts.count(WITHIN)} within the "
            f"spread, {verdicts.count(DRIFT)} drifted."
        )

    def table(self) -> Table:
        """Return all scores as a table, one per row."""
        return Table(
            name="drift",
            title="Drift",
            caption=(
                "Each score beside the stored one: the mean over seeds ± standard deviation. "
                f"Drift: a difference above what the spread allows, which is {N_DEVIATIONS} "
                "standard errors of the difference over seeds, or a quarter of the standard error "
                "over test documents if that is larger."
            ),
            headers=["measure", "stored", "now", "difference", "allowed", "verdict"],
            rows=[_row(each) for each in self.changes],
        )


def find_drift(now: Summary, stored: Summary) -> Drift:
    """Compare the summary of a comparison with a stored one.

    Example:
        >>> def summary(f1):
        ...     score = {"mean": f1, "std": None, "n_seeds": 1, "low": f1 - .01, "high": f1 + .01}
        ...     scores = {"br": {"set": {"instance_f1": score}}}
        ...     return {"data": "news", "n_documents": {"test": 90}, "n_labels": 4,
        ...             "data_hash": "0", "own_rules": {"br": "set"}, "scores": scores}
        >>> [each.verdict for each in find_drift(summary(0.71), summary(0.7)).changes]
        ['drift']
    """
    _refuse_other_data(now, stored)
    notes = []
    if now["data_hash"] != stored["data_hash"]:
        notes.append(
            "The prepared data differ: other texts, or another version or other settings of their "
            "preparation."
        )
    if "setups" not in stored:
        notes.append(
            "The stored summary has no settings and versions. It was made by: "
            + "; ".join(stored.get("commands", ["unknown"]))
        )
    changes = _find_changes(now, stored)
    if not changes:
        raise DataError(
            "The comparison has no system in common with the stored one, which has "
            f"{join_names(list(stored['scores']))}. Give another folder to --against."
        )
    return Drift(
        data=str(now["data"]),
        changes=changes,
        settings=_find_setting_changes(now, stored),
        missing=[system for system in stored["scores"] if system not in now["scores"]],
        notes=notes,
    )


def read_summary(folder: Path) -> Summary:
    """Read the summary of a report; `folder` is the report, its comparison, or a stored copy."""
    for file in (folder, folder / SUMMARY, folder / REPORT / SUMMARY):
        if file.is_file():
            break
    else:
        raise DataError(
            f"{folder} holds no {SUMMARY}. Give the folder of a report, or of a comparison that "
            "'setrnn report' was run on."
        )
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not JSON. Give the folder that holds {SUMMARY}.") from error
    needed = ("data", "data_hash", "n_documents", "n_labels", "own_rules", "scores")
    if not isinstance(summary, dict) or any(name not in summary for name in needed):
        raise DataError(f"{file} is not the summary of a comparison. Make it by 'setrnn report'.")
    return summary


def _refuse_other_data(now: Summary, stored: Summary) -> None:
    for name in ("n_documents", "n_labels"):
        if now[name] != stored[name]:
            raise DataError(
                f"The stored comparison is on other data: {name} is {stored[name]} there, and "
                f"{now[name]} here. Give the stored results of '{now['data']}'."
            )


def _find_changes(now: Summary, stored: Summary) -> list[Change]:
    pairs = {
        (system, rule, measure): tuple(
            Score.read(side["scores"][system][rule][measure]) for side in (stored, now)
        )
        for system, rule, measure in _list_scores(stored)
        if measure in now["scores"].get(system, {}).get(rule, {})
    }
    changes = []
    for (system, rule, measure), (before, after) in pairs.items():
        others = [
            spread
            for (_, _, name), pair in pairs.items()
            if name == measure and (spread := _own_spread(*pair)) is not None
        ]
        allowed = _allow(system, before, after, others)
        changes.append(Change(system, rule, measure, before, after, allowed))
    return changes


def _list_scores(summary: Summary) -> Iterator[tuple[str, str, str]]:
    """Yield the scores of the report's main tables: by the own rule, and by that of the measure."""
    for system, by_rule in summary["scores"].items():
        own = summary["own_rules"].get(system)
        yield from ((system, own, measure) for measure in MEASURES if own in by_rule)
        for measure, rule in RULE_FOR.items():
            if rule in by_rule and rule != own:
                yield system, rule, measure


def _own_spread(stored: Score, now: Score) -> float | None:
    """Return the standard deviation over the seeds of both sides; None if neither has two."""
    known = [(each.std, each.n_seeds - 1) for each in (stored, now) if each.std is not None]
    if not known:
        return None
    return math.sqrt(sum(n * std**2 for std, n in known) / sum(n for _, n in known))


def _allow(system: str, stored: Score, now: Score, spreads: Sequence[float]) -> float:
    """Return the largest difference that the spread allows."""
    error = max(stored.error, now.error)
    least = SHARE_OF_ERROR * error
    if system in METHODS and METHODS[system].family == "classical":
        return least
    typical = median(spreads) if spreads else UNKNOWN_SPREAD * error
    spread = max(_own_spread(stored, now) or 0.0, typical)
    return max(least, N_DEVIATIONS * spread * math.sqrt(1 / stored.n_seeds + 1 / now.n_seeds))


def _find_setting_changes(now: Summary, stored: Summary) -> list[SettingChange]:
    """List the settings that differ; a setting that only one side has is "not there"."""
    if "setups" not in stored or "setups" not in now:
        return []
    systems = [system for system in stored["scores"] if system in now["scores"]]
    found: dict[tuple[str, str, str], list[str]] = {}
    for field, setup in now["setups"].items():
        before = stored["setups"].get(field, {"common": {}, "differing": {}})
        names = dict.fromkeys(name for each in (before, setup) for name in _list_names(each))
        for name in names:
            for system in systems:
                was, value = _value(before, name, system), _value(setup, name, system)
                if was != value:
                    found.setdefault((name, was, value), []).append(system)
    return [
        SettingChange(*key, () if len(changed) == len(systems) else tuple(changed))
        for key, changed in found.items()
    ]


def _list_names(setup: Mapping[str, Any]) -> list[str]:
    return [*setup["common"], *setup["differing"]]


def _value(setup: Mapping[str, Any], name: str, system: str) -> str:
    if name in setup["common"]:
        return str(setup["common"][name])
    for value, systems in setup["differing"].get(name, {}).items():
        if system in systems:
            return str(value)
    return "not there"


def _row(change: Change) -> Row:
    measure = change.measure
    return Row(
        change.system,
        [
            Cell(f"{MEASURES[measure]} (rule {change.rule})"),
            Cell(change.stored.write(measure), change.stored.mean, more={"std": change.stored.std}),
            Cell(change.now.write(measure), change.now.mean, more={"std": change.now.std}),
            Cell(format_change(change.difference, measure), change.difference),
            Cell(format_score(change.allowed, measure), change.allowed),
            Cell(change.verdict),
        ],
    )
