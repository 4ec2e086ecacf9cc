"""The report as one HTML file: it needs no network, fits a phone, and prints."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from setrnn import __version__
from setrnn.comparison.records import Comparison, Record
from setrnn.report.case_studies import render_case_studies
from setrnn.report.claims import FAILS, HOLDS, IN_PART, UNDECIDED, Evidence, Finding
from setrnn.report.findings import Findings
from setrnn.report.html_table import render_table
from setrnn.report.parts import Figure, Table
from setrnn.report.settings import Settings, split_settings
from setrnn.report.wording import counted

# Nothing is fetched, whatever a label or a word holds.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
# Tables that have a section of their own; all others come under "More tables".
MAIN, PREDICTION, RULES, COSTS = "systems", "rules", "best-rules", "costs"
MOST_EVIDENCE = 3  # of a finding, that is shown without being asked for
CLAIMS_HINT = (
    "Each system predicts by its own rule, as in the paper. After the scores comes their "
    "difference, with its 95% interval in brackets, and p, the chance of such a difference if "
    "there were none, corrected within each finding (in the tables over the whole table, so that "
    "it is larger there). Not shown is no proof of the contrary: the interval tells how large a "
    "difference can still be."
)
FORM_NAMES = {"csv": "CSV", "tex": "LaTeX", "md": "Markdown"}
LOOKS = {HOLDS: "right", IN_PART: "part", FAILS: "wrong", UNDECIDED: "open"}


@dataclass(frozen=True)
class Section:
    """A part of the page, and its entry in the contents."""

    name: str
    title: str
    body: str


@dataclass(frozen=True)
class Content:
    """All that the page shows."""

    comparison: Comparison
    records: Sequence[Record]
    findings: Findings
    caveats: Sequence[str]
    tables: Sequence[Table]
    figures: Sequence[Figure]
    files: Mapping[str, str]  # of tables, by name: systems.csv, systems.tex


def render_page(content: Content) -> str:
    """Return the whole page."""
    sections = [section for section in _sections(content) if section.body]
    links = "".join(
        f'<li><a href="#{section.name}">{escape(section.title)}</a></li>' for section in sections
    )
    body = "\n".join(
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">\n'
        f'<h2 id="{section.name}-title">{escape(section.title)}</h2>\n{section.body}\n</section>'
        for section in sections
    )
    title = f"Systems compared on {content.comparison.data}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(title)}</title>
<style>
{_beside("css")}</style>
</head>
<body>
<a class="skip" href="#findings">Skip to the findings</a>
<header>
<h1>{escape(title)}</h1>
<p>{_summary_line(content)}</p>
</header>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<main>
{body}
</main>
<footer><p>Made by setrnn {escape(__version__)} from the records of the comparison; no model was
read. The systems are those of Qin, Li, Pavlu and Aslam, Adapting RNN Sequence Prediction Model to
Multi-label Set Prediction, NAACL 2019, and some beyond.</p></footer>
<script>
{_beside("js")}</script>
</body>
</html>
"""


def _beside(suffix: str) -> str:
    return files("setrnn.report").joinpath(f"page.{suffix}").read_text(encoding="utf-8")


def _sections(content: Content) -> list[Section]:
    by_name = {table.name: table for table in content.tables}
    rest = [table for table in content.tables if table.name not in (MAIN, PREDICTION, RULES, COSTS)]
    return [
        Section("findings", "Findings", _findings(content)),
        Section("systems", "The systems", _table_of(content, by_name.get(MAIN))),
        Section(
            "prediction",
            "Predicting the set instead of the sequence",
            _table_of(content, by_name.get(PREDICTION)),
        ),
        Section("figures", "Figures", _figures(content.figures)),
        Section(
            "rules", "Rules: the best set for each measure", _table_of(content, by_name.get(RULES))
        ),
        Section("cases", "Case studies", render_case_studies(content.records)),
        Section("costs", "What it took", _table_of(content, by_name.get(COSTS))),
        Section("tables", "More tables", _more_tables(content, rest)),
        Section("settings", "Commands and settings", _commands(content)),
        Section("reading", "How to read the statistics", _reading()),
        Section("files", "Files", _files(content)),
    ]


def _summary_line(content: Content) -> str:
    comparison = content.comparison
    succeeded = [record for record in content.records if record.test is not None]
    systems = len({record.method for record in succeeded})
    train, valid = (comparison.n_documents.get(part, 0) for part in ("train", "valid"))
    kind = "synthetic documents" if comparison.synthetic else "documents"
    return escape(
        f"{counted(systems, 'system')}, {counted(len(succeeded), 'run')}, "
        f"{counted(comparison.n_labels, 'label')}; {train:,} train, {valid:,} valid and "
        f"{len(comparison.truth):,} test {kind}."
    )


def _findings(content: Content) -> str:
    findings = content.findings
    parts = []
    if findings.best:
        parts += [
            "<h3>The best system by each measure, with its 95% interval</h3>",
            _list(map(_best_sentence, findings.best)),
        ]
    else:
        parts.append("<p>No run succeeded: there is nothing to compare.</p>")
    if content.caveats:
        parts += [
            '<div class="caveats" role="note"><h3>Before you cite it</h3>',
            _list(map(escape, content.caveats)),
            "</div>",
        ]
    if findings.papers:
        parts += [
            "<h3>Do the paper's findings hold on this data?</h3>",
            f'<p class="hint">{CLAIMS_HINT}</p>',
            _claims(findings.papers),
        ]
    if findings.untested:
        untested = "; ".join(findings.untested)
        parts.append(
            f'<p class="hint">Not tested, as systems it takes are missing: {escape(untested)}.</p>'
        )
    if findings.beyond:
        parts += ["<h3>Beyond the paper</h3>", _claims(findings.beyond)]
    return "\n".join(parts)


def _best_sentence(sentence: str) -> str:
    measure, _, rest = sentence.partition(": ")
    return f"<b>{escape(measure)}</b>: {_together(escape(rest))}"


def _claims(findings: Iterable[Finding]) -> str:
    return f'<ul class="claims">{"".join(map(_claim, findings))}</ul>'


def _claim(finding: Finding) -> str:
    verdict = finding.verdict
    mark = "" if verdict is None else f'<span class="mark is-{LOOKS[verdict]}">{verdict}</span> '
    evidence = _list(map(_evidence, finding.evidence))
    if len(finding.evidence) > MOST_EVIDENCE:
        evidence = f"<details><summary>{_counts(finding.evidence)}</summary>{evidence}</details>"
    return f"<li><p>{mark}{escape(finding.claim)}.</p>{evidence}</li>"


def _evidence(evidence: Evidence) -> str:
    return _together(escape(evidence.text)) + "."


def _together(text: str) -> str:
    """Keep a p and its value on one line."""
    return re.sub(r"\bp (=|≥|≤|&lt;) ", r"p&nbsp;\1&nbsp;", text)


def _counts(evidence: Sequence[Evidence]) -> str:
    verdicts = [each.verdict for each in evidence]
    told = [f"{verdict} for {n}" for verdict in LOOKS if (n := verdicts.count(verdict))]
    return f"{escape(', '.join(told))} of {len(evidence)} systems".capitalize()


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _table_of(content: Content, table: Table | None) -> str:
    if table is None or not table.rows:
        return ""
    return render_table(table) + _downloads(content, table)


def _downloads(content: Content, table: Table) -> str:
    """Link to the table's files; they travel within the page."""
    links = [
        f'<a download="{escape(name)}" href="data:text/plain;charset=utf-8;base64,'
        f'{base64.b64encode(text.encode()).decode()}">{FORM_NAMES[name.rpartition(".")[2]]}'
        f'<span class="unseen"> of {escape(table.title)}</span></a>'
        for name, text in content.files.items()
        if name.rpartition(".")[0] == table.name
    ]
    return f'\n<p class="downloads">{" ".join(links)}</p>' if links else ""


def _figures(figures: Sequence[Figure]) -> str:
    return "\n".join(
        f"""<figure id="figure-{escape(figure.name)}">
<h3>{escape(figure.title)}</h3>
<div class="picture" role="img" aria-label="{escape(figure.alt)}">{_inline(figure.svg)}</div>
<figcaption>{escape(figure.caption)}
<a class="save" download="{escape(figure.name)}.svg" href="figures/{escape(figure.name)}.svg">SVG
<span class="unseen"> of {escape(figure.title)}</span></a></figcaption>
</figure>"""
        for figure in figures
    )


def _inline(svg: str) -> str:
    """Take the XML prologue off: within HTML it is a bogus comment."""
    return svg[svg.index("<svg") :]


def _more_tables(content: Content, tables: Sequence[Table]) -> str:
    return "\n".join(
        f"<details><summary><h3>{escape(table.title)}</h3></summary>\n"
        f"{_table_of(content, table)}</details>"
        for table in tables
        if table.rows
    )


def _commands(content: Content) -> str:
    commands = "\n".join(content.comparison.commands)
    parts = []
    if commands:
        parts.append(f"<pre tabindex='0'><code>{escape(commands)}</code></pre>")
    parts.append(
        f"<p>The prepared data has the hash <code>{escape(content.comparison.data_hash)}</code>: "
        "runs on other data are refused.</p>"
    )
    for field, title in (
        ("treatment", "How the runs were treated"),
        ("environment", "Where they ran"),
        ("config", "Settings"),
    ):
        parts += _settings(title, split_settings(content.records, field))
    return "\n".join(parts)


def _settings(title: str, settings: Settings) -> list[str]:
    if not settings.common and not settings.differing:
        return []
    parts = [f"<h3>{escape(title)}</h3>"]
    if settings.differing:
        rows = "".join(
            f"<li><code>{escape(name)}</code>: "
            + "; ".join(
                f"{escape(value)} ({escape(', '.join(systems))})"
                for value, systems in _by_value(by_system).items()
            )
            + "</li>"
            for name, by_system in settings.differing.items()
        )
        parts.append(f"<p>Different between systems:</p><ul>{rows}</ul>")
    if settings.common:
        listing = "\n".join(f"{name} = {value}" for name, value in settings.common.items())
        parts.append(
            f"<details><summary>{_same(settings)}</summary>"
            f"<pre tabindex='0'><code>{escape(listing)}</code></pre></details>"
        )
    return parts


def _same(settings: Settings) -> str:
    others = "The other" if settings.differing else "All"
    return f"{others} {counted(len(settings.common), 'setting')}, the same for every system"


def _by_value(by_system: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for system, value in by_system.items():
        found.setdefault(value, []).append(system)
    return found


def _reading() -> str:
    return """<dl>
<dt>.741 ± .002</dt>
<dd>Mean and standard deviation over runs that differ in their seed only; classical systems have no
chance in them and run once.</dd>
<dt>Under a score</dt>
<dd>Its 95% interval, and the p of its difference to the best of the column.</dd>
<dt>95% interval</dt>
<dd>What another test part of this size, from the same source, and other seeds would mostly give:
the bootstrap draws documents and runs with replacement and measures again.</dd>
<dt>p</dt>
<dd>Of a difference between two systems, on the same drawn documents: how often chance alone would
give one as large, if there were none. Where several are looked at together, p is corrected for it
(Holm). Below .05 a difference counts as shown.</dd>
<dt>Bold and underlined</dt>
<dd>Bold is the best of a column if it is told apart from every other system. If it is not, the best
and those not told apart from it are underlined: any of them may be the best.</dd>
<dt>Holds, holds in part, does not hold, not shown</dt>
<dd>A finding holds if every comparison it takes shows it; in part, if some do and none contradicts.
It does not hold if a comparison shows the contrary. Otherwise it is not shown, which is no proof of
the contrary: the interval tells how large a difference can still be.</dd>
<dt>Measures</dt>
<dd>Instance-F1 is the mean over documents, label-F1 over labels (rare ones count as much as
frequent ones), micro-F1 pools all decisions; subset accuracy is the share of documents whose whole
set is right; hamming loss is the share of wrong decisions, lowest is best.</dd>
</dl>"""


def _files(content: Content) -> str:
    tables = ", ".join(
        f'<a href="tables/{escape(name)}">{escape(name)}</a>' for name in content.files
    )
    pictures = ", ".join(
        f'<a href="figures/{escape(figure.name)}.svg">{escape(figure.name)}.svg</a>'
        for figure in content.figures
    )
    rows = [
        '<a href="summary.json">summary.json</a>: scores, intervals, findings and p-values',
        f"Tables: {tables}" if tables else "",
        f"Figures: {pictures}" if pictures else "",
        "<code>setrnn report DIR</code> makes all of it again from the records",
    ]
    return (
        "<p>In the folder of this page; the links under tables and figures also work when you "
        "have the page alone.</p>" + _list(row for row in rows if row)
    )
