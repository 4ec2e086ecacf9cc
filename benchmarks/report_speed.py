"""Measure how long a report takes to build, and which parts take the time.

    python benchmarks/report_speed.py COMPARISON [--runs 40]

COMPARISON is a folder of `setrnn compare`. Its runs are copied under more seeds, up to the given
number, into a folder that is removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from threadpoolctl import threadpool_limits

from setrnn.comparison.records import RUNS, Comparison, load_records
from setrnn.comparison.statistics import bootstrap
from setrnn.report.build import build_report
from setrnn.report.figures import draw_figures
from setrnn.report.tables import make_tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparison", type=Path)
    parser.add_argument("--runs", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        comparison = Comparison.load(arguments.comparison)
        comparison.save(folder)
        repeat_runs(arguments.comparison / RUNS, folder / RUNS, arguments.runs)
        start = time.perf_counter()
        build_report(folder)
        whole = time.perf_counter() - start
        print(f"{arguments.runs} runs of {len(comparison.truth):,} documents: {whole:.1f} s")
        records = timed("reading", lambda: load_records(folder, comparison))
        draws = bootstrap(comparison, records)  # drawn on first use
        with threadpool_limits(1):  # as build_report
            timed("bootstrap and tables", lambda: make_tables(comparison, records, draws))
        timed("figures", lambda: draw_figures(comparison, records))


def repeat_runs(source: Path, target: Path, n_runs: int) -> None:
    """Copy the records of the networks under other seeds, up to the given number."""
    target.mkdir()
    records = [
        json.loads(file.read_text(encoding="utf-8")) for file in sorted(source.glob("*.json"))
    ]
    networks = [each for each in records if each["epochs"]]
    extra = islice(cycle(networks), max(n_runs - len(records), 0))
    repeated = [{**each, "seed": 100 + number} for number, each in enumerate(extra)]
    for each in [*records, *repeated]:
        file = target / f"{each['method']}-{each['seed']}.json"
        file.write_text(json.dumps(each), encoding="utf-8")


def timed(what, work):  # noqa: ANN001, ANN201 (any work)
    start = time.perf_counter()
    found = work()
    print(f"  {what}: {time.perf_counter() - start:.1f} s")
    return found


if __name__ == "__main__":
    main()
