"""Copy the reports of comparisons into docs/results, and their tables into the pages.

    python docs/results/make.py [COMPARISON...]

COMPARISON is a folder of `setrnn compare` with its report. Its summary, tables and figures are
copied to docs/results/NAME; without figures to docs/results/paper/NAME if it has the preset
`paper`, and to docs/results/later/NAME if it has systems of later papers. Then, also without any
COMPARISON, everything that follows from these copies is written again: the table of objectives and
the tables of the pages.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import takewhile, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from setrnn.methods import METHODS
from setrnn.report.findings import PAPERS_FINDINGS
from setrnn.report.table import FORMS
from setrnn.report.tables import objectives_table
from setrnn.report.wording import format_change, format_decimal, format_p

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATASETS = ("arxiv", "debtags", "reuters21578")
WITH_PAPER = ("paper/arxiv", "paper/debtags", "paper/reuters21578")  # with the preset `paper`
LATER = ("later/arxiv", "later/debtags", "later/reuters21578")  # with systems of later papers
PLACES = (*DATASETS, *WITH_PAPER, *LATER)
LATER_METHODS = [name for name, method in METHODS.items() if method.is_later]
LIKELIHOOD = "log p(true set)"
SYSTEMS = ("instance-F1", "label-F1", "micro-F1", "subset accuracy", "hamming loss", LIKELIHOOD)
# The columns of a page's table, by the name of the report's table they come from; one that begins
# with "paper-" is of the comparisons with the preset `paper`.
PAGES = {
    ROOT / "README.md": {
        "best-rules": (
            "instance-F1 (rule f1)",
            "label-F1 (rule label-f1)",
            "micro-F1 (rule micro-f1)",
        ),
    },
    HERE / "README.md": {
        "made-with": (),
        "systems": SYSTEMS,
        "best-rules": (
            "instance-F1 (rule f1)",
            "label-F1 (rule label-f1)",
            "micro-F1 (rule micro-f1)",
            "subset accuracy (rule set)",
            "hamming loss (rule hamming)",
        ),
        "paper-systems": SYSTEMS,
    },
    ROOT / "docs" / "replication.md": {
        "verdicts": (),
        "findings": (),
        "paper-findings": (),
    },
    ROOT / "docs" / "later.md": {
        "systems": ("instance-F1", "label-F1", "micro-F1", "subset accuracy", LIKELIHOOD),
        "best-rules": (
            "instance-F1 (rule f1)",
            "label-F1 (rule label-f1)",
            "micro-F1 (rule micro-f1)",
            "subset accuracy (rule set)",
        ),
    },
}
MARKS = {"best": "**{}**", "tied": "*{}*"}


def main() -> None:
    """Copy the given reports, and write what follows from the copies."""
    for folder in map(Path, sys.argv[1:]):
        copy_report(folder)
    for data in PLACES:
        for file, text in refreshed_files(data).items():
            file.write_text(text, encoding="utf-8")
    for page in PAGES:
        page.write_text(with_tables(page), encoding="utf-8")


def copy_report(folder: Path) -> None:
    """Copy the parts of a report that hold no text of a document."""
    report = folder / "report"
    if not (report / "summary.json").is_file():
        sys.exit(f"{folder} has no report: run `setrnn report {folder}` first.")
    summary = json.loads((report / "summary.json").read_text(encoding="utf-8"))
    group = _group(summary)
    target = HERE / group / summary["data"]
    with TemporaryDirectory() as place:
        made = Path(place) / "made"
        for part in ("tables",) if group else ("tables", "figures"):
            shutil.copytree(report / part, made / part)
        shutil.copyfile(report / "summary.json", made / "summary.json")
        for file in (made / "tables").glob("joint-*"):
            file.unlink()
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)


def _group(summary: dict) -> str:
    """Return the folder of results like these: "" for those of the default settings."""
    if any("--preset paper" in command for command in summary["commands"]):
        return "paper"
    return "later" if any(name in LATER_METHODS for name in summary["own_rules"]) else ""


def refreshed_files(data: str) -> dict[Path, str]:
    """Return the table of objectives, which follows from the methods of a dataset."""
    table = objectives_table(list(_rows(data, "systems")))
    return {
        HERE / data / "tables" / f"objectives.{ending}": form(table)
        for ending, form in FORMS.items()
    }


def with_tables(page: Path) -> str:
    """Return a page with its tables written again, each between two comments."""
    text = page.read_text(encoding="utf-8")
    for name, columns in PAGES[page].items():
        table = make_table(name, columns, page)
        place = re.search(rf"<!-- {name}: .*?-->\n(.*?)\n?<!-- end -->", text, re.DOTALL)
        assert place, f"{page} has no place for the table {name}"
        text = text[: place.start(1)] + table + text[place.end(1) :]
    return text


def make_table(name: str, columns: tuple[str, ...], page: Path) -> str:
    """Lay out one table of a page: scores of datasets, or verdicts on findings."""
    if name == "verdicts":
        return verdicts_table()
    if name == "made-with":
        return versions_table()
    if page == ROOT / "README.md":
        return _side_by_side(name, columns)
    places = LATER if page.name == "later.md" else DATASETS
    if name.startswith("paper-"):
        name, places = name.removeprefix("paper-"), WITH_PAPER
    if name == "findings":
        return findings_table(places)
    return "\n\n".join(f"{_name(data)}:\n\n{_one(data, name, columns)}" for data in places)


def versions_table() -> str:
    """Lay out which version, with which settings, each stored comparison was made with."""
    lines = ["| tables | setrnn | torch | preset | word vectors |", "|---|---|---|---|---|"]
    for data in PLACES:
        setups = _summary(data)["setups"]
        cells = [
            _values(setups["environment"], "setrnn"),
            _values(setups["environment"], "torch"),
            f"`{_values(setups['treatment'], 'preset')}`",
            _values(setups["config"], "vectors.source"),
        ]
        lines.append(f"| [{data}]({data}/tables) | {' | '.join(cells)} |")
    return "\n".join(lines)


def _values(setup: dict, name: str) -> str:
    """Return the value that all systems share, or those of several."""
    if name in setup["common"]:
        return setup["common"][name]
    return ", ".join(sorted(setup["differing"][name]))


def _side_by_side(name: str, columns: tuple[str, ...]) -> str:
    rows = {data: _rows(data, name) for data in DATASETS}
    headers = [
        f"{data + ': ' if number == 0 else ''}{_short(column)}"
        for data in DATASETS
        for number, column in enumerate(columns)
    ]
    lines = ["| | " + " | ".join(headers) + " |", "|---" * (len(headers) + 1) + "|"]
    for system in rows[DATASETS[0]]:
        cells = [
            _cell(rows[data][system], column) if system in rows[data] else "-"
            for data in DATASETS
            for column in columns
        ]
        lines.append(f"| `{system}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _one(data: str, name: str, columns: tuple[str, ...]) -> str:
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for system, row in _rows(data, name).items():
        cells = [_cell(row, column, with_std=True) for column in columns]
        lines.append(f"| `{system}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def findings_table(places: tuple[str, ...]) -> str:
    """Lay out the comparisons of the paper's findings, one per row, with a cell per dataset."""
    lines = [f"| compared, measure | {' | '.join(map(_name, places))} |"]
    lines.append("|---" * (len(places) + 1) + "|")
    for _, found in _list_findings(places):
        for comparisons in zip_longest(*found):
            there = [each for each in comparisons if each is not None]
            if not there:
                continue
            same, differing = _split_names([each["compared"].split() for each in there])
            words = iter(differing)
            cells = ["-" if each is None else _evidence(each, next(words)) for each in comparisons]
            lines.append(f"| {same}, {there[0]['measure']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def verdicts_table() -> str:
    """Lay out the verdicts alone, of both presets."""
    places = (*DATASETS, *WITH_PAPER)
    headers = [*DATASETS, *(f"`paper` {_name(data)}" for data in WITH_PAPER)]
    lines = ["| the paper's finding | " + " | ".join(headers) + " |"]
    lines.append("|---" * (len(headers) + 1) + "|")
    for claim, found in _list_findings(places):
        lines.append(f"| {claim} | " + " | ".join(_verdicts(each) or "-" for each in found) + " |")
    return "\n".join(lines)


def _list_findings(places: tuple[str, ...]) -> Iterator[tuple[str, list[list[dict]]]]:
    """Yield each claim of the paper with its comparisons, a list per place."""
    found = {data: _summary(data)["papers_findings"] for data in places}
    for name, (claim, _) in PAPERS_FINDINGS.items():
        yield claim, [[each for each in found[data] if each["name"] == name] for data in places]


def _split_names(names: list[list[str]]) -> tuple[str, list[str]]:
    """Return the words that names have in common, with ... for the others, and those of each."""
    n_first = _count_same(names)
    rests = [each[n_first:] for each in names]
    n_last = _count_same([each[::-1] for each in rests])
    middles = [" ".join(each[: len(each) - n_last]) for each in rests]
    dots = ["..."] if any(middles) else []
    return " ".join([*names[0][:n_first], *dots, *rests[0][len(rests[0]) - n_last :]]), middles


def _count_same(names: list[list[str]]) -> int:
    """Count the first words that all names share."""
    words = zip(*names, strict=False)
    return sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, words))


def _verdicts(found: list[dict]) -> str:
    """Write the verdicts of a finding's comparisons, once where they agree."""
    verdicts = [each["verdict"] for each in found]
    return " / ".join(verdicts if len(set(verdicts)) > 1 else verdicts[:1])


def _name(data: str) -> str:
    return data.rpartition("/")[2]


def _evidence(finding: dict, differing: str) -> str:
    """Write one comparison of a finding: the difference, its interval, p and the verdict."""
    found = finding["difference"]
    mean, low, high = (format_change(found[name]) for name in ("mean", "low", "high"))
    name = f"{differing}: " if differing else ""
    return f"{name}{mean} ({low} to {high}), {format_p(found['p'])}, **{finding['verdict']}**"


def _summary(data: str) -> dict:
    return json.loads((HERE / data / "summary.json").read_text(encoding="utf-8"))


def _rows(data: str, name: str) -> dict[str, dict[str, str]]:
    with (HERE / data / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        return {row["system"]: row for row in csv.DictReader(stream)}


def _cell(row: dict[str, str], column: str, with_std: bool = False) -> str:
    digits = {"hamming": 4, "log": 2}.get(column.split()[0], 3)
    text = format_decimal(float(row[column]), digits)
    if with_std and row[f"{column} std"]:
        text += f" ± {format_decimal(float(row[f'{column} std']), digits)}"
    return MARKS.get(row.get(f"{column} mark", ""), "{}").format(text)


def _short(column: str) -> str:
    return column.split(" (")[0]


if __name__ == "__main__":
    main()
