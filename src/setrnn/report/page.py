"""The report as one HTML file: it needs no network, fits a phone, and prints."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from setrnn import __version__
from setrnn.comparison.records import Comparison, Record
from setrnn.config import flatten
from setrnn.report.case_studies import CaseStudies
from setrnn.report.figures import Figure
from setrnn.report.table import Table
from setrnn.report.templates import render
from setrnn.report.wording import format_count

MAIN = "systems"
# The sections: name, title, and the table of a section that shows one.
SECTIONS = (
    ("systems", "The systems", MAIN),
    ("findings", "Do the paper's findings hold on this data?", "findings"),
    ("prediction", "Predicting the set instead of the sequence", "rules"),
    ("figures", "Figures", ""),
    ("rules", "Rules: the best set for each measure", "best-rules"),
    ("unseen", "Label sets that train does not have", "unseen-sets"),
    ("hierarchy", "In the hierarchy of the labels", "hierarchy"),
    ("calibration", "Can probabilities be trusted?", "calibration"),
    ("sums", "What a search misses of a set", "set-sums"),
    ("cases", "Case studies", ""),
    ("costs", "Costs", "costs"),
    ("tables", "More tables", ""),
    ("settings", "Commands and settings", ""),
    ("reading", "How to read the statistics", ""),
    ("files", "Files", ""),
)
LONG_TEXT = 30  # characters; longer cells wrap
FORM_NAMES = {"csv": "CSV", "md": "Markdown"}
SETTINGS = {
    "treatment": "How the runs were treated",
    "environment": "Where they ran",
    "config": "Settings",
}
VARYING = ("seed", "time", "started", "ended", "finished", "date")  # different in every run


@dataclass(frozen=True)
class Content:
    """All that the page shows."""

    comparison: Comparison
    records: Sequence[Record]
    caveats: Sequence[str]
    tables: Sequence[Table]
    figures: Sequence[Figure]
    files: Mapping[str, str]  # of tables, by name: systems.csv


@dataclass(frozen=True)
class ShownTable:
    """A table as the page shows it."""

    table: Table
    columns: Mapping[int, bool]  # the columns that are not empty; whether they hold numbers
    has_notes: bool
    downloads: Sequence[tuple[str, str, str]]  # file name, form, and link with the whole content
    long_text: int = LONG_TEXT


@dataclass(frozen=True)
class Section:
    """A section of the page, and its entry in the contents."""

    name: str
    title: str
    table: ShownTable | None = None


@dataclass(frozen=True)
class Settings:
    """Settings by dotted name: those equal in all runs, and those that differ."""

    common: Mapping[str, str]
    differing: Mapping[str, Mapping[str, Sequence[str]]]  # by name, then by value: the systems


def render_page(content: Content) -> str:
    """Return the whole page."""
    shown = {table.name: show_table(table, content.files) for table in content.tables if table.rows}
    own_tables = [table for _, _, table in SECTIONS if table]
    more_tables = [table for name, table in shown.items() if name not in own_tables]
    has_content = {"figures": bool(content.figures), "tables": bool(more_tables)}
    sections = [
        Section(name, title, shown.get(table))
        for name, title, table in SECTIONS
        if (table in shown if table else has_content.get(name, True))
    ]
    return render(
        "report.html",
        title=f"Systems compared on {content.comparison.data}",
        summary=_summarise(content),
        version=__version__,
        sections=sections,
        comparison=content.comparison,
        caveats=content.caveats,
        has_runs=any(record.test is not None for record in content.records),
        figures=content.figures,
        # The texts of a figure were escaped when it was drawn.
        drawings={figure.name: Markup(figure.svg) for figure in content.figures},
        cases=CaseStudies.choose(content.records),
        more_tables=more_tables,
        settings=[
            (title, split_settings(content.records, field)) for field, title in SETTINGS.items()
        ],
        files=list(content.files),
        count=format_count,
    )


def show_table(table: Table, files: Mapping[str, str]) -> ShownTable:
    """Choose the columns that are not empty, and link to the files of a table.

    The links contain the files, so that they work when the page is alone.
    """
    columns = {
        column: any(row.cells[column].value is not None for row in table.rows)
        for column in range(len(table.headers))
        if any(row.cells[column].text for row in table.rows)
    }
    downloads = []
    for name, text in files.items():
        stem, _, form = name.rpartition(".")
        if stem == table.name:
            content = base64.b64encode(text.encode()).decode()
            link = f"data:text/plain;charset=utf-8;base64,{content}"
            downloads.append((name, FORM_NAMES[form], link))
    has_notes = any(cell.note for row in table.rows for cell in row.cells)
    return ShownTable(table, columns, has_notes, downloads)


def split_settings(records: Sequence[Record], field: str) -> Settings:
    """Separate the settings that are equal in all runs from those that differ.

    `field` is config, treatment or environment. Different values of one system are listed
    together; a system without a setting is left out of it.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for record in records:
        if record.is_added:
            continue
        for name, value in flatten(getattr(record, field)).items():
            values = found.setdefault(name, {}).setdefault(record.method, [])
            if (text := _format_setting(value)) not in values:
                values.append(text)
    common: dict[str, str] = {}
    differing: dict[str, dict[str, list[str]]] = {}
    for name, by_system in found.items():
        if name.rpartition(".")[2] in VARYING:
            continue
        distinct = {tuple(values) for values in by_system.values()}
        if len(distinct) == 1 and len(next(iter(distinct))) == 1:
            common[name] = next(iter(distinct))[0]
        else:
            for system, values in by_system.items():
                differing.setdefault(name, {}).setdefault(" / ".join(values), []).append(system)
    return Settings(common, differing)


def _summarise(content: Content) -> str:
    """Write the line below the title: the systems, the runs, the data."""
    comparison = content.comparison
    succeeded = [record for record in content.records if record.test is not None]
    systems = len({record.method for record in succeeded})
    train, valid = (comparison.n_documents.get(part, 0) for part in ("train", "valid"))
    kind = "synthetic documents" if comparison.synthetic else "documents"
    return (
        f"{format_count(systems, 'system')}, {format_count(len(succeeded), 'run')}, "
        f"{format_count(comparison.n_labels, 'label')}; {train:,} train, {valid:,} valid and "
        f"{len(comparison.truth):,} test {kind}."
    )


def _format_setting(value: object) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
