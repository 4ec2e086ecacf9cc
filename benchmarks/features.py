"""What features beside the text are worth: the paper's user tags, on data that have such fields.

    python benchmarks/features.py make DATA OUT            # OUT: DATA with features
    setrnn compare DATA --methods all --seeds 3 --out without
    setrnn compare OUT --methods all --seeds 3 --out with
    python benchmarks/features.py table without with [--json FILE.json]

DATA is a folder of JSON Lines. The features are the parts of the field `name` (of a Debian package:
python3-numpy-dbg has python, numpy and dbg), or else the words of the field `title` (of a paper).
The table has each system with and without features by its own rule, and the difference with its 95%
interval and p-value: a paired bootstrap over documents and seeds, Holm-corrected over the systems.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from setrnn.comparison.records import Comparison, Record, load_records, order_systems
from setrnn.comparison.statistics import Difference, Entry, bootstrap, holm
from setrnn.errors import SetRNNError
from setrnn.metrics import MEASURES
from setrnn.report.score_tables import own_entries
from setrnn.report.wording import format_change, format_p, format_score

FIELDS = ("name", "title")
SHOWN = ("instance_f1", "label_f1", "subset_accuracy")
WITH = " with features"


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make")
    make.add_argument("data", type=Path)
    make.add_argument("out", type=Path)
    table = commands.add_parser("table")
    table.add_argument("without", type=Path)
    table.add_argument("with_features", type=Path)
    table.add_argument("--json", type=Path)
    arguments = parser.parse_args(given)
    if arguments.command == "make":
        add_features(arguments.data, arguments.out)
        return
    rows = compare_both(arguments.without, arguments.with_features)
    print(write_table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def add_features(data: Path, out: Path) -> None:
    """Write the files of a folder again, with features."""
    files = sorted([*data.glob("*.jsonl"), *data.glob("*.jsonl.gz")])
    if not files:
        raise SystemExit(f"{data} has no files of JSON Lines (.jsonl, .jsonl.gz).")
    out.mkdir(parents=True, exist_ok=True)
    for file in files:
        open_file = gzip.open if file.suffix == ".gz" else open
        n_rows = n_features = 0
        with (
            open_file(file, "rt", encoding="utf-8") as source,
            open_file(out / file.name, "wt", encoding="utf-8") as target,
        ):
            for row in map(json.loads, source):
                row["features"] = list_features(row)
                n_rows += 1
                n_features += len(row["features"])
                target.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(f"{out / file.name}: {n_features / max(n_rows, 1):.2f} features per document")


def list_features(row: Mapping[str, Any]) -> list[str]:
    """Return the distinct words of the first field that a row has.

    >>> list_features({"name": "python3-numpy-dbg"})
    ['python', 'numpy', 'dbg']
    """
    text = next((str(row[field]) for field in FIELDS if row.get(field)), "")
    words = re.findall(r"[^\W\d_]{2,}", text.lower())
    return [each for each in dict.fromkeys(words) if each not in ENGLISH_STOP_WORDS]


def compare_both(without: Path, with_features: Path) -> list[dict[str, Any]]:
    """Return a row per system: its scores without and with features, and the difference."""
    comparison = Comparison.load(without)
    other = Comparison.load(with_features)
    known, given = (
        (each.ids, each.labels, [sorted(row) for row in each.truth]) for each in (comparison, other)
    )
    if known != given:
        raise SystemExit(f"The test documents or labels of {without} and {with_features} differ.")
    plain = [each for each in load_records(without, comparison) if each.test is not None]
    named = list(_rename(load_records(with_features, other)))
    draws = bootstrap(comparison, [*plain, *named])
    own = own_entries(plain, draws)
    rows = []
    for name in order_systems(plain):
        first = own[name]
        second = Entry(name + WITH, first.rule)
        if second not in draws.entries:
            continue
        for measure in MEASURES:
            found = draws.difference(second, first, measure)
            scores = [draws.summary(each, measure).mean for each in (first, second)]
            rows.append(_row(name, measure, scores, found))
    for measure in MEASURES:
        of_measure = [row for row in rows if row["measure"] == measure]
        corrected = holm([row["p"] for row in of_measure])
        for row, p in zip(of_measure, corrected, strict=True):
            row["p"] = p
    return rows


def _row(name: str, measure: str, scores: Sequence[float], found: Difference) -> dict[str, Any]:
    return {
        "system": name,
        "measure": measure,
        "without": scores[0],
        "with": scores[1],
        "difference": found.mean,
        "low": found.low,
        "high": found.high,
        "p": found.p,
    }


def _rename(records: list[Record]) -> Iterator[Record]:
    for record in records:
        if record.test is not None:
            yield replace(record, method=record.method + WITH)


def write_table(rows: list[dict[str, Any]]) -> str:
    """Write the rows as Markdown: without, with, and the difference."""
    heads = [MEASURES[measure] for measure in SHOWN]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for system in dict.fromkeys(row["system"] for row in rows):
        cells = []
        for measure in SHOWN:
            (row,) = [
                each for each in rows if (each["system"], each["measure"]) == (system, measure)
            ]
            change = format_change(row["difference"], measure)
            scores = " → ".join(format_score(row[each], measure) for each in ("without", "with"))
            cells.append(f"{scores} ({change}, {format_p(row['p'])})")
        lines.append(f"| `{system}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        main()
    except SetRNNError as error:
        sys.exit(f"error: {error}")
