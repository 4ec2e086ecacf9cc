"""Tables of scores: which system is best, and whether the difference is significant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from math import inf
from typing import Any

import numpy as np

from setrnn.comparison.records import GIVEN, Record, order_systems
from setrnn.comparison.statistics import (
    LEVEL,
    LOG_LIKELIHOOD,
    POWER,
    Bootstrap,
    Entry,
    Standing,
    documents_needed,
    holm,
)
from setrnn.metrics import MEASURES
from setrnn.report.table import NO_CELL, Cell, Row, Table
from setrnn.report.wording import format_change, format_documents, format_p, format_score

# The prediction rule for each measure.
RULE_FOR = {
    "instance_f1": "f1",
    "label_f1": "label-f1",
    "micro_f1": "micro-f1",
    "subset_accuracy": "set",
    "hamming_loss": "hamming",
}
RULE_ORDER = ("set", "sequence", "f1", "label-f1", "micro-f1", "hamming", GIVEN)
LARGE_GAIN = 0.01  # the paper highlights larger ones
MARKS = (
    "Mean over seeds ± standard deviation. p: paired bootstrap over documents and seeds, against "
    "the best of the column; Holm-corrected over all such comparisons of the column. Bold: the "
    "best of its column, significantly better than every other one (p < .05). Underlined: the best "
    "and those not significantly different from it, where no system is significantly better than "
    "every other one."
)
LOWER = "Hamming loss: lower is better."
TRUE_SET = "log p(true set)"
LIKELIHOOD = (
    f"{TRUE_SET}: the mean log of the model's own probability of the true set, of which at least "
    "log 1e-12 counts; of a large set, recurrent systems sum only the orders that the search "
    "finds. Higher is better."
)


def own_entries(records: Sequence[Record], bootstrap: Bootstrap) -> dict[str, Entry]:
    """Return each system that has a run, by its own rule."""
    rules = {record.method: record.own_rule for record in records if record.test is not None}
    entries = {name: Entry(name, rules[name]) for name in order_systems(records) if name in rules}
    return {name: entry for name, entry in entries.items() if entry in bootstrap.entries}


def systems_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Make the paper's Table 2: each system by its own rule."""
    entries = own_entries(records, bootstrap)
    columns = [make_score_column(records, bootstrap, measure, entries) for measure in MEASURES]
    headers = list(MEASURES.values())
    caption = f"Each system by its own rule, as in the paper. {MARKS} {LOWER}"
    known = {name: entry for name, entry in entries.items() if bootstrap.has(entry, LOG_LIKELIHOOD)}
    if known:
        columns.append(make_score_column(records, bootstrap, LOG_LIKELIHOOD, known))
        headers.append(TRUE_SET)
        caption = f"{caption} {LIKELIHOOD}"
    return Table("systems", "Systems", caption, headers, make_rows(records, columns))


def best_rules_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Score each measure by the rule for it."""
    columns = []
    for measure in MEASURES:
        rules = (RULE_FOR[measure], GIVEN)
        entries = {each.system: each for each in bootstrap.entries if each.rule in rules}
        columns.append(make_score_column(records, bootstrap, measure, entries))
    return Table(
        name="best-rules",
        title="Each measure by its own rule",
        caption=(
            "One trained model per run, which predicts by the rule for the measure of the "
            f"column; added predictions are used as they are. {MARKS} {LOWER}"
        ),
        headers=[f"{shown} (rule {RULE_FOR[measure]})" for measure, shown in MEASURES.items()],
        rows=make_rows(records, columns),
    )


def all_rules_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Score every system by every rule."""
    entries = [
        Entry(system, rule)
        for system in order_systems(records)
        for rule in RULE_ORDER
        if Entry(system, rule) in bootstrap.entries
    ]
    standings = {measure: bootstrap.standing(entries, measure) for measure in MEASURES if entries}
    rows = []
    for entry in entries:
        cells = [_score_cell(bootstrap, entry, *standing) for standing in standings.items()]
        rows.append(Row(entry.system, [Cell(entry.rule), *cells]))
    return Table(
        name="all-rules",
        title="Every system by every rule",
        caption=f"{MARKS} {LOWER}",
        headers=["rule", *MEASURES.values()],
        rows=rows,
    )


def rules_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Make the paper's Table 3: the gain of other rules over the best sequence."""
    measures = ("instance_f1", "label_f1", "micro_f1")
    systems = [
        name for name in order_systems(records) if Entry(name, "sequence") in bootstrap.entries
    ]
    columns = [(measure, rule) for measure in measures for rule in ("set", "f1")]
    places = [
        (system, measure, rule)
        for system in systems
        for measure, rule in columns
        if Entry(system, rule) in bootstrap.entries
    ]
    gains = [
        bootstrap.difference(Entry(system, rule), Entry(system, "sequence"), measure)
        for system, measure, rule in places
    ]
    corrected = holm([gain.p for gain in gains])
    cells = {}
    for place, gain, p in zip(places, gains, corrected, strict=True):
        system, measure, rule = place
        before = bootstrap.mean(Entry(system, "sequence"), measure)
        large = "" if abs(gain.mean) <= LARGE_GAIN else " ↑" if gain.mean > 0 else " ↓"
        marks = large + (" *" if p < LEVEL else "")
        scores = f"{format_score(before)} → {format_score(before + gain.mean)}"
        cells[place] = Cell(
            text=f"{scores} ({format_change(gain.mean)}){marks}",
            value=gain.mean,
            note=f"95% {format_change(gain.low)} to {format_change(gain.high)}; {format_p(p)}",
            more={
                "sequence": before,
                rule: before + gain.mean,
                "low": gain.low,
                "high": gain.high,
                "p": p,
                "tests": len(places),
            },
        )
    return Table(
        name="rules",
        title="The best sequence, the best set, the best set for F1",
        caption=(
            "For systems that emit labels one by one: the score by rule sequence, the score by the "
            "other rule, and the gain. ↑ and ↓: a change of more than .01, which the paper "
            "highlights. *: significant (p < .05, paired bootstrap over documents and seeds, "
            f"Holm-corrected over the {len(places)} gains of this table). Gains are computed "
            "before rounding."
        ),
        headers=[f"{MEASURES[measure]}, sequence → {rule}" for measure, rule in columns],
        rows=[
            Row(system, [cells.get((system, *column), NO_CELL) for column in columns])
            for system in systems
        ],
    )


def differences_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Compare all pairs of systems, each by its own rule."""
    entries = list(own_entries(records, bootstrap).values())
    measures = ("instance_f1", "label_f1")
    found = {measure: bootstrap.pairs(entries, measure) for measure in measures}
    n_tests = len(found[measures[0]])
    rows = []
    for first, second in found[measures[0]]:
        cells = [Cell(second.system)]
        for measure in measures:
            each = found[measure][first, second]
            cells += [
                Cell(
                    f"{format_change(each.mean)}{' *' if each.p < LEVEL else ''}",
                    each.mean,
                    note=f"95% {format_change(each.low)} to {format_change(each.high)}",
                    more={"low": each.low, "high": each.high},
                ),
                Cell(
                    format_p(each.p).removeprefix("p = ").removeprefix("p "),
                    each.p,
                    more={"tests": n_tests},
                ),
                _power_cell(bootstrap, first, second, measure, n_tests, each.p),
            ]
        rows.append(Row(first.system, cells))
    return Table(
        name="differences",
        title="Differences between all pairs of systems",
        caption=(
            "The score of the first system minus that of the second, each by its own rule, with "
            "its 95% interval. p: paired bootstrap over documents and seeds, Holm-corrected over "
            f"the {n_tests:,} pairs of a measure. *: significant (p < .05). Documents: where it is "
            "not significant, about how many test documents would show a difference of this size "
            f"with a chance of {POWER:.0%}, after the same correction and with the same number of "
            "seeds; '+ seeds' where the spread between seeds hides it, so that it takes many more "
            "seeds as well."
        ),
        headers=[
            "second",
            *(f"{MEASURES[name]}{what}" for name in measures for what in ("", " p", " documents")),
        ],
        rows=rows,
        row_header="first",
    )


def _power_cell(
    bootstrap: Bootstrap, first: Entry, second: Entry, measure: str, n_tests: int, p: float
) -> Cell:
    if p < LEVEL:
        return NO_CELL
    needed = documents_needed(bootstrap, first, second, measure, n_tests)
    value = needed.n_documents if needed.n_documents < inf else None
    text = format_documents(needed.n_documents) + (" + seeds" if needed.needs_seeds else "")
    return Cell(text, value, more={"needs seeds": float(needed.needs_seeds)})


def _recorded(records: Sequence[Record], system: str, score: str) -> list[float | None]:
    """Return a score of each run of a system by its own rule, as it was recorded."""
    return [
        record.scores.get("test", {}).get(record.own_rule, {}).get(score)
        for record in records
        if record.method == system and record.test is not None
    ]


def summarise_likelihoods(records: Sequence[Record], bootstrap: Bootstrap) -> dict[str, Any]:
    """Return log p(true set) of each system as plain values, with its interval."""
    found: dict[str, Any] = {}
    for name, entry in own_entries(records, bootstrap).items():
        if bootstrap.has(entry, LOG_LIKELIHOOD):
            by_seed = [
                each for each in _recorded(records, name, LOG_LIKELIHOOD) if each is not None
            ]
            found[name] = {**asdict(bootstrap.summary(entry, LOG_LIKELIHOOD)), "by_seed": by_seed}
    return found


def make_mean_cell(
    known: Sequence[float | None], write: Callable[[float], str] = format_score
) -> Cell:
    """Write the mean and the standard deviation of the values that are known."""
    values = [value for value in known if value is not None]
    if not values:
        return NO_CELL
    mean = float(np.mean(values))
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    text = write(mean) if std is None else f"{write(mean)} ± {write(std)}"
    return Cell(text, mean, more={"std": std})


def make_score_column(
    records: Sequence[Record], bootstrap: Bootstrap, measure: str, entries: Mapping[str, Entry]
) -> dict[str, Cell]:
    """Make a column of scores, by system; a system whose runs all failed shows the reason."""
    systems = order_systems(records)
    compared = [entries[name] for name in systems if name in entries]
    standing = bootstrap.standing(compared, measure) if compared else None
    cells = {}
    for name in systems:
        runs = [record for record in records if record.method == name]
        failures = [record.failure for record in runs if record.failure is not None]
        if len(failures) == len(runs):
            cells[name] = Cell("failed", note=f"{failures[0].kind}: {failures[0].message}")
        elif standing is not None and name in entries:
            remark = f"{len(runs) - len(failures)} of {len(runs)} runs" if failures else ""
            cells[name] = _score_cell(bootstrap, entries[name], measure, standing, remark)
    return cells


def make_rows(records: Iterable[Record], columns: Sequence[Mapping[str, Cell]]) -> list[Row]:
    """Put columns side by side: one row per system."""
    return [
        Row(system, [column.get(system, NO_CELL) for column in columns])
        for system in order_systems(records)
    ]


def _score_cell(
    bootstrap: Bootstrap, entry: Entry, measure: str, standing: Standing, remark: str = ""
) -> Cell:
    summary = bootstrap.summary(entry, measure)
    text = format_score(summary.mean, measure)
    if summary.std is not None:
        text += f" ± {format_score(summary.std, measure)}"
    notes = [f"95% {format_score(summary.low, measure)} to {format_score(summary.high, measure)}"]
    p = standing.p.get(entry)  # None for the best
    if standing.p:
        notes.append("best mean" if p is None else format_p(p))
    if remark:
        notes.append(remark)
    return Cell(
        text=text,
        value=summary.mean,
        is_best=p is None and standing.stands,
        is_tied=entry in standing.tied or (p is None and bool(standing.tied)),
        note="; ".join(notes),
        more={
            "std": summary.std,
            "low": summary.low,
            "high": summary.high,
            "p": p,
            "tests": None if p is None else len(standing.p),
        },
    )
