"""Tables of scores: who is best, and whether that stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from setrnn.comparison.records import GIVEN, Record
from setrnn.comparison.statistics import LEVEL, MEASURES, Bootstrap, Entry, Standing, holm
from setrnn.methods import METHODS
from setrnn.report.numbers import change, p_value, score
from setrnn.report.parts import Cell, Row, Table

# The rule that is made for each measure.
RULE_FOR = {
    "instance_f1": "f1",
    "label_f1": "label-f1",
    "micro_f1": "micro-f1",
    "subset_accuracy": "set",
    "hamming_loss": "hamming",
}
RULE_ORDER = ("set", "sequence", "f1", "label-f1", "micro-f1", "hamming", GIVEN)
LARGE_GAIN = 0.01  # what the paper highlights
MARKS = (
    "Mean over seeds ± standard deviation. Bold: the best of its column, and it stands against "
    "each other one (paired bootstrap over documents and seeds, p < .05 after Holm). Underlined: "
    "the best where it does not stand, and those not told apart from it. Hamming loss: lower is "
    "better."
)
NOTHING = Cell("")


def ordered_systems(records: Iterable[Record]) -> list[str]:
    """List the systems: the methods in their order, then what was added."""
    names = list(dict.fromkeys(record.method for record in records))
    known = [name for name in METHODS if name in names]
    return known + [name for name in names if name not in METHODS]


def own_entries(records: Sequence[Record], bootstrap: Bootstrap) -> dict[str, Entry]:
    """Return the entry of each system by its own rule, of those that have a run."""
    rules = {record.method: record.own_rule for record in records if record.test is not None}
    entries = {name: Entry(name, rules[name]) for name in ordered_systems(records) if name in rules}
    return {name: entry for name, entry in entries.items() if entry in bootstrap.entries}


def systems_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Make the paper's Table 2: each system by its own rule."""
    entries = own_entries(records, bootstrap)
    return Table(
        name="systems",
        title="Systems",
        caption=f"Each system by its own rule, as in the paper. {MARKS}",
        headers=list(MEASURES.values()),
        rows=rows_of(
            records,
            [score_column(records, bootstrap, measure, entries) for measure in MEASURES],
        ),
    )


def best_rules_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Score each measure by the rule made for it."""
    columns = [
        score_column(
            records,
            bootstrap,
            measure,
            {
                entry.system: entry
                for entry in bootstrap.entries
                if entry.rule in (RULE_FOR[measure], GIVEN)
            },
        )
        for measure in MEASURES
    ]
    return Table(
        name="best-rules",
        title="Each measure by the rule made for it",
        caption=(
            "One trained model, predicting anew for each measure; predictions that were added are "
            f"as they were given. {MARKS}"
        ),
        headers=[f"{shown} (rule {RULE_FOR[measure]})" for measure, shown in MEASURES.items()],
        rows=rows_of(records, columns),
    )


def all_rules_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Score every system by every rule."""
    entries = [
        Entry(system, rule)
        for system in ordered_systems(records)
        for rule in RULE_ORDER
        if Entry(system, rule) in bootstrap.entries
    ]
    standings = {measure: bootstrap.standing(entries, measure) for measure in MEASURES if entries}
    return Table(
        name="all-rules",
        title="Every system by every rule",
        caption=MARKS,
        headers=["rule", *MEASURES.values()],
        rows=[
            Row(
                entry.system,
                [
                    Cell(entry.rule),
                    *(
                        _score_cell(bootstrap, entry, measure, standing)
                        for measure, standing in standings.items()
                    ),
                ],
            )
            for entry in entries
        ],
    )


def rules_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Make the paper's Table 3: what other rules gain over the best sequence."""
    measures = ("instance_f1", "label_f1", "micro_f1")
    systems = [
        name for name in ordered_systems(records) if Entry(name, "sequence") in bootstrap.entries
    ]
    places = [
        (system, measure, rule)
        for system in systems
        for measure in measures
        for rule in ("set", "f1")
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
        cells[place] = Cell(
            text=(
                f"{score(before)} → {score(before + gain.mean)} ({change(gain.mean)}){large}"
                f"{' *' if p < LEVEL else ''}"
            ),
            value=gain.mean,
            note=f"95% {change(gain.low)} to {change(gain.high)}; {p_value(p)}",
            more={
                "sequence": before,
                rule: before + gain.mean,
                "low": gain.low,
                "high": gain.high,
                "p": p,
            },
        )
    return Table(
        name="rules",
        title="The best sequence, the best set, the best set for F1",
        caption=(
            "Of systems that emit labels one by one: rule sequence, then the other rule, and the "
            "gain. ↑ and ↓: a change of more than .01, what the paper highlights. *: it stands "
            "(p < .05, paired bootstrap, corrected after Holm over this table). Gains are those of "
            "the scores before rounding."
        ),
        headers=[
            f"{MEASURES[measure]}, sequence → {rule}"
            for measure in measures
            for rule in ("set", "f1")
        ],
        rows=[
            Row(
                system,
                [
                    cells.get((system, measure, rule), NOTHING)
                    for measure in measures
                    for rule in ("set", "f1")
                ],
            )
            for system in systems
        ],
    )


def differences_table(records: Sequence[Record], bootstrap: Bootstrap) -> Table:
    """Compare all pairs of systems, by their own rules."""
    entries = list(own_entries(records, bootstrap).values())
    measures = ("instance_f1", "label_f1")
    found = {measure: bootstrap.pairs(entries, measure) for measure in measures}
    rows = []
    for first, second in found[measures[0]]:
        cells = [Cell(second.system)]
        for measure in measures:
            each = found[measure][first, second]
            cells += [
                Cell(
                    f"{change(each.mean)}{' *' if each.p < LEVEL else ''}",
                    each.mean,
                    note=f"95% {change(each.low)} to {change(each.high)}",
                    more={"low": each.low, "high": each.high},
                ),
                Cell(p_value(each.p).removeprefix("p = ").removeprefix("p "), each.p),
            ]
        rows.append(Row(first.system, cells))
    return Table(
        name="differences",
        title="Differences between all pairs of systems",
        caption=(
            "The first's score less the second's, each by its own rule, with its 95% interval. p: "
            "paired bootstrap, corrected after Holm over all pairs of a measure. *: it stands "
            "(p < .05)."
        ),
        headers=[
            "second",
            *(f"{MEASURES[name]}{what}" for name in measures for what in ("", " p")),
        ],
        rows=rows,
        row_header="first",
    )


def score_column(
    records: Sequence[Record], bootstrap: Bootstrap, measure: str, entries: Mapping[str, Entry]
) -> dict[str, Cell]:
    """Make a column of scores, by system; one whose runs all failed says why."""
    systems = ordered_systems(records)
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


def rows_of(records: Iterable[Record], columns: Sequence[Mapping[str, Cell]]) -> list[Row]:
    """Put columns side by side, a row for each system."""
    return [
        Row(system, [column.get(system, NOTHING) for column in columns])
        for system in ordered_systems(records)
    ]


def _score_cell(
    bootstrap: Bootstrap,
    entry: Entry,
    measure: str,
    standing: Standing,
    remark: str = "",
) -> Cell:
    summary = bootstrap.summary(entry, measure)
    text = score(summary.mean, measure)
    if summary.std is not None:
        text += f" ± {score(summary.std, measure)}"
    notes = [f"95% {score(summary.low, measure)} to {score(summary.high, measure)}"]
    p = standing.p.get(entry)  # None: it is the best
    if standing.p:
        notes.append("best mean" if p is None else p_value(p))
    if remark:
        notes.append(remark)
    return Cell(
        text=text,
        value=summary.mean,
        is_best=p is None and standing.stands,
        is_tied=entry in standing.tied or (p is None and bool(standing.tied)),
        note="; ".join(notes),
        more={"std": summary.std, "low": summary.low, "high": summary.high, "p": p},
    )
