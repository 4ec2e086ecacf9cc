"""From the records of a comparison to its report: tables, figures, a summary, one page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from setrnn import __version__
from setrnn.comparison.records import (
    COMPARISON_FILE,
    REPORT,
    Comparison,
    Record,
    load_records,
)
from setrnn.comparison.statistics import Bootstrap, bootstrap
from setrnn.data.folders import whole_folder
from setrnn.errors import DataError
from setrnn.report.caveats import caveats
from setrnn.report.claims import Finding
from setrnn.report.figures import draw_figures
from setrnn.report.findings import Findings, find
from setrnn.report.forms import summary_json, to_csv, to_latex, to_markdown
from setrnn.report.page import MAIN, Content, render_page
from setrnn.report.parts import Table
from setrnn.report.score_tables import ordered_systems
from setrnn.report.tables import joint_systems_table, make_tables

PAGE, SUMMARY = "index.html", "summary.json"
FORMS = {"csv": to_csv, "tex": to_latex, "md": to_markdown}


@dataclass(frozen=True)
class Report:
    """A report that was written."""

    page: Path
    files: tuple[Path, ...]
    systems: Table | None  # None: no run succeeded
    findings: Findings
    caveats: tuple[str, ...]


def build_report(folder: Path, out: Path | None = None, beside: Sequence[Path] = ()) -> Report:
    """Read the records, and write the report whole or not at all.

    With other comparisons `beside` it, one more table sets the systems of all side by side.
    """
    comparison, records = _read(folder)
    others = [_read(each) for each in beside]
    target = folder / REPORT if out is None else out
    _check_target(target, folder)
    with threadpool_limits(1):  # many small products: waiting for a busy core costs more
        draws = bootstrap(comparison, records)
        tables = make_tables(comparison, records, draws)
        if others:
            rest = [(*each, bootstrap(*each)) for each in others]
            tables.append(joint_systems_table([(comparison, records, draws), *rest]))
        figures = draw_figures(comparison, records)
        findings = find(comparison, records, draws)
    limits = caveats(comparison, records)
    texts = {
        f"{table.name}.{ending}": form(table) for table in tables for ending, form in FORMS.items()
    }
    content = Content(comparison, records, findings, limits, tables, figures, texts)
    contents = {
        PAGE: render_page(content),
        SUMMARY: _as_json(summarise(comparison, records, draws, findings, limits)),
        **{f"tables/{name}": text for name, text in texts.items()},
        **{f"figures/{figure.name}.svg": figure.svg for figure in figures},
    }
    with whole_folder(target) as temporary:
        for name, text in contents.items():
            file = temporary / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return Report(
        page=target / PAGE,
        files=tuple(target / name for name in contents),
        systems=next((table for table in tables if table.name == MAIN), None),
        findings=findings,
        caveats=tuple(limits),
    )


def summarise(
    comparison: Comparison,
    records: Sequence[Record],
    draws: Bootstrap,
    findings: Findings,
    limits: Sequence[str],
) -> dict[str, Any]:
    """Return the report's numbers and findings as plain values."""
    return {
        "setrnn": __version__,
        **summary_json(comparison, records, draws),
        "synthetic": comparison.synthetic,
        "valid_is_cut": comparison.valid_is_cut,
        "commands": list(comparison.commands),
        "best": list(findings.best),
        "papers_findings": [_finding(each) for each in findings.papers],
        "beyond": [_finding(each) for each in findings.beyond],
        "untested": list(findings.untested),
        "caveats": list(limits),
    }


def _read(folder: Path) -> tuple[Comparison, list[Record]]:
    """Read a comparison; refuse what is none, or has no runs."""
    if not (folder / COMPARISON_FILE).is_file():
        raise DataError(
            f"{folder} holds no comparison ({COMPARISON_FILE} is missing). Name the folder that "
            "'setrnn compare --out' wrote."
        )
    comparison = Comparison.load(folder)
    records = _in_order(load_records(folder, comparison))
    if not records:
        raise DataError(f"{folder} holds no runs yet. Run 'setrnn compare' first, or let it go on.")
    return comparison, records


def _in_order(records: Sequence[Record]) -> list[Record]:
    """Order them by system, as everywhere, then by seed."""
    systems = ordered_systems(records)
    return sorted(records, key=lambda record: (systems.index(record.method), record.seed))


def _finding(finding: Finding) -> dict[str, Any]:
    return {**asdict(finding), "verdict": finding.verdict}


def _as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def _check_target(target: Path, folder: Path) -> None:
    """Refuse to replace a folder that is no report: all that is in it would be lost."""
    target, folder = target.resolve(), folder.resolve()
    if target == folder or target in folder.parents:
        raise DataError(f"{target} holds the comparison. Name another folder for the report.")
    if target.is_dir() and any(target.iterdir()) and not (target / SUMMARY).is_file():
        raise DataError(
            f"{target} is not empty and holds no report. Name a new folder, or an empty one."
        )
