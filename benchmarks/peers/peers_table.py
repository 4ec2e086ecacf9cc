"""Make the tables of docs/peers.md from the records of comparisons alone.

    python benchmarks/peers/peers_table.py COMPARISON... [--page docs/peers.md] [--draws 4999]

COMPARISON is a folder of `setrnn compare` with added rows ROW.threshold-RULE and ROW.rule-RULE (see
`choose_sets.py`). Each measure of a system is taken by what was chosen for it. Intervals are 95%
bootstrap intervals over test documents and seeds; p-values are of the same draws, and corrected by
Holm's method over the systems of one table and measure. With `--page`, the tables are written
between the comments of the page: `DATA scores` and `DATA winners`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from choose_sets import MEASURES

from setrnn.comparison.records import GIVEN, Comparison, Record, load_records, order_systems
from setrnn.comparison.statistics import DRAWS, LEVEL, Bootstrap, Entry, holm
from setrnn.errors import SetRNNError
from setrnn.methods import METHODS
from setrnn.metrics import MEASURES as NAMES
from setrnn.report.wording import format_change, format_score
from setrnn.systems.rules import rule_for

THRESHOLD, RULE = "threshold", "rule"
FORMS = {THRESHOLD: "one threshold", RULE: "our rules"}
SHOWN = ("br", "br-support", "pcc", "set-rnn", "set-rnn-exact", "sigmoid", "mixture")

Row = tuple[str, str]  # the system, and the form: "threshold" or "rule"


def list_rows(records: Sequence[Record]) -> list[Row]:
    """Return our systems, then the peers by both forms."""
    ours = [(name, RULE) for name in order_systems(records) if name in SHOWN]
    peers = {
        match.group(1): None
        for record in records
        if record.is_added and (match := re.fullmatch(r"(.+)\.rule-f1", record.method))
    }
    return ours + [(name, form) for name in peers for form in (THRESHOLD, RULE)]


def find_entry(row: Row, measure: str) -> Entry:
    """Return what a row predicts for a measure."""
    name, form = row
    rule = rule_for(measure)
    return Entry(name, rule) if name in METHODS else Entry(f"{name}.{form}-{rule}", GIVEN)


def scores_table(draws: Bootstrap, rows: Sequence[Row]) -> str:
    """Return scores with intervals: bold where best, italic where not significantly different."""
    marks: dict[tuple[Row, str], str] = {}
    for measure in MEASURES:
        entries = {row: find_entry(row, measure) for row in rows}
        standing = draws.standing(list(entries.values()), measure)
        for row, entry in entries.items():
            if entry == standing.best:
                marks[row, measure] = "**" if standing.stands else "*"
            elif entry in standing.tied and not standing.stands:
                marks[row, measure] = "*"
    lines = [
        "| | by | " + " | ".join(NAMES[measure] for measure in MEASURES) + " |",
        "|---" * 6 + "|",
    ]
    for row in rows:
        cells = []
        for measure in MEASURES:
            found = draws.summary(find_entry(row, measure), measure)
            mark = marks.get((row, measure), "")
            low, high = format_score(found.low), format_score(found.high)
            cells.append(f"{mark}{format_score(found.mean)}{mark} [{low}, {high}]")
        lines.append(f"| `{row[0]}` | {FORMS[row[1]]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def winners_table(draws: Bootstrap, rows: Sequence[Row]) -> str:
    """Compare the best peer of each measure with our systems."""
    ours = [row for row in rows if row[0] in METHODS]
    peers = [row for row in rows if row[0] not in METHODS]
    lines = [
        "| measure | best peer | best of ours | peer - ours | p | significantly below this peer |",
        "|---" * 6 + "|",
    ]
    for measure in MEASURES:
        value = {row: draws.mean(find_entry(row, measure), measure) for row in rows}
        peer, own = max(peers, key=value.__getitem__), max(ours, key=value.__getitem__)
        found = {
            row: draws.difference(find_entry(peer, measure), find_entry(row, measure), measure)
            for row in ours
        }
        corrected = dict(zip(found, holm([each.p for each in found.values()]), strict=True))
        beaten = [row[0] for row in ours if found[row].mean > 0 and corrected[row] < LEVEL]
        best = found[own]
        interval = (
            f"{format_change(best.mean)} [{format_change(best.low)}, {format_change(best.high)}]"
        )
        lines.append(
            f"| {NAMES[measure]} | `{peer[0]}`, {FORMS[peer[1]]}: {format_score(value[peer])} "
            f"| `{own[0]}`: {format_score(value[own])} | {interval} "
            f"| {format_score(corrected[own])} "
            f"| {', '.join(f'`{each}`' for each in beaten) or 'none'} |"
        )
    return "\n".join(lines)


def make_tables(folder: Path, n_draws: int) -> Mapping[str, str]:
    """Return the tables of one comparison by the names of their places in the page."""
    comparison = Comparison.load(folder)
    records = load_records(folder, comparison)
    rows = list_rows(records)
    if all(name in METHODS for name, _ in rows):
        raise SystemExit(
            f"{folder} has no rows of other tools: run.py --compare {folder} adds them."
        )
    named = {find_entry(row, measure).system for row in rows for measure in MEASURES}
    draws = Bootstrap(comparison, [each for each in records if each.method in named], n_draws)
    return {
        f"{comparison.data} scores": scores_table(draws, rows),
        f"{comparison.data} winners": winners_table(draws, rows),
    }


def write_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with the tables between their comments."""
    for name, table in tables.items():
        place = re.search(rf"<!-- {name}: .*?-->\n(.*?)<!-- end -->", page, re.DOTALL)
        if not place:
            raise SystemExit(f"The page has no place <!-- {name}: ... --> for a table.")
        page = page[: place.start(1)] + table + "\n" + page[place.end(1) :]
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparisons", nargs="+", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--draws", type=int, default=DRAWS)
    chosen = parser.parse_args()
    for folder in chosen.comparisons:
        tables = make_tables(folder, chosen.draws)
        if chosen.page:
            text = chosen.page.read_text(encoding="utf-8")
            chosen.page.write_text(write_tables(text, tables), encoding="utf-8")
        else:
            print("\n\n".join(f"{name}:\n\n{table}" for name, table in tables.items()))


if __name__ == "__main__":
    try:
        main()
    except SetRNNError as error:
        sys.exit(f"error: {error}")
