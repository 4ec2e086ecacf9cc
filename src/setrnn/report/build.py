"""Build the report of a comparison from its records: tables, figures, a summary, one page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import isfinite
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
    order_systems,
)
from setrnn.comparison.statistics import (
    LOG_LIKELIHOOD,
    Bootstrap,
    Entry,
    bootstrap,
    documents_needed,
)
from setrnn.data.disk import whole_folder
from setrnn.errors import DataError
from setrnn.metrics import MEASURES
from setrnn.progress import OnProgress, ignore_progress, show_step
from setrnn.report.drift import SUMMARY, Drift, find_drift, read_summary
from setrnn.report.figures import draw_figures
from setrnn.report.findings import Finding, find, findings_table
from setrnn.report.page import MAIN, SETTINGS, Content, render_page, split_settings
from setrnn.report.score_tables import own_entries, summarise_likelihoods
from setrnn.report.systems import CLASSICAL
from setrnn.report.table import Table, to_csv, to_markdown
from setrnn.report.tables import joint_systems_table, make_tables
from setrnn.report.wording import join_names

PAGE = "index.html"
MAX_MESSAGE = 200  # characters of a failure
# What the p-values of a summary are corrected for, by Holm's method.
CORRECTIONS = {
    "standings": "all others of a measure against its best system",
    "differences": "all pairs of systems of a measure",
    "papers_findings": "all comparisons of one finding",
}
FORMS = {"csv": to_csv, "md": to_markdown}


@dataclass(frozen=True)
class Report:
    """A report that was written."""

    page: Path
    files: tuple[Path, ...]
    systems: Table | None  # None where no run succeeded
    findings: Sequence[Finding]  # of the paper, tested on this data
    caveats: tuple[str, ...]
    drift: Drift | None = None  # None if there was nothing to compare with


def build_report(
    folder: str | Path,
    out: str | Path | None = None,
    beside: Sequence[str | Path] = (),
    on_progress: OnProgress = ignore_progress,
    *,
    against: str | Path | None = None,
) -> Report:
    """Read the records of a comparison and write its report, completely or not at all.

    Args:
        folder: the folder of the comparison.
        out: where to write the report, instead of `folder/report`.
        beside: other comparisons; one more table puts the systems of all side by side.
        on_progress: called with the progress.
        against: the stored report of the same data; one more table has the scores of both, and
            which of them have drifted.

    Example:
        >>> import setrnn
        >>> report = setrnn.build_report("results")  # doctest: +SKIP
        >>> report.findings[0].verdict  # doctest: +SKIP
        'holds'
    """
    folder = Path(folder)
    damage: list[str] = []
    comparison, records = _read(folder, damage.append)
    others = [_read(Path(each), damage.append) for each in beside]
    target = folder / REPORT if out is None else Path(out)
    _check_target(target, folder)
    stored = None if against is None else read_summary(Path(against))
    step = partial(show_step, "the report", on_progress=on_progress, part_of="comparing")
    with threadpool_limits(1):  # many small products, where waiting for a busy core costs more
        with step("intervals and p-values"):
            draws = bootstrap(comparison, records)
            rest = [(*each, bootstrap(*each)) for each in others]
        with step("tables"):
            findings = find(comparison, records, draws)
            tables = [*make_tables(comparison, records, draws), findings_table(findings)]
            if others:
                tables.append(joint_systems_table([(comparison, records, draws), *rest]))
        with step("figures"):
            figures = draw_figures(comparison, records)
    caveats = [*damage, *list_caveats(comparison, records)]
    summary = summarise(comparison, records, draws, findings, caveats)
    drift = None if stored is None else find_drift(summary, stored)
    if drift is not None:
        tables.append(drift.table)
    texts = {
        f"{table.name}.{ending}": form(table) for table in tables for ending, form in FORMS.items()
    }
    content = Content(comparison, records, caveats, tables, figures, texts)
    contents = {
        PAGE: render_page(content),
        SUMMARY: json.dumps(summary, indent=1, ensure_ascii=False) + "\n",
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
        caveats=tuple(caveats),
        drift=drift,
    )


def list_caveats(comparison: Comparison, records: Sequence[Record]) -> Iterator[str]:
    """Yield what limits what the numbers show: about the data, failures, seeds and treatment."""
    if comparison.synthetic:
        yield "The data is synthetic: it does not show how systems rank on real texts."
    if comparison.valid_is_cut:
        yield "The data had no valid part: it was cut from train."
    for record in records:
        if record.failure is not None:
            message = " ".join(record.failure.message.split())[:MAX_MESSAGE]
            yield f"{record.name} failed ({record.failure.kind}: {message})."
    runs = [record for record in records if record.test is not None]
    n_runs = Counter(record.method for record in runs if not record.is_added)
    groups = {
        "Trained with one seed, so that intervals cover documents alone": [
            name for name, n in n_runs.items() if n == 1 and name not in CLASSICAL
        ],
        "Training was ended by the budget": [
            record.name for record in runs if record.treatment.get("was_cut_by_budget")
        ],
        "Predictions made elsewhere, perhaps with other training data": [
            record.method for record in runs if record.is_added
        ],
        "Versions of setrnn that differ from this one": sorted(
            {record.setrnn for record in runs} - {__version__}
        ),
    }
    for what, names in groups.items():
        if names:
            yield f"{what}: {join_names(names)}."


def summarise(
    comparison: Comparison,
    records: Sequence[Record],
    draws: Bootstrap,
    findings: Sequence[Finding],
    caveats: Sequence[str],
) -> dict[str, Any]:
    """Return the report's numbers and findings as plain values."""
    return {
        "setrnn": __version__,
        **summarise_scores(comparison, records, draws),
        "synthetic": comparison.synthetic,
        "valid_is_cut": comparison.valid_is_cut,
        "commands": list(comparison.commands),
        "setups": {field: asdict(split_settings(records, field)) for field in SETTINGS},
        "papers_findings": [asdict(each) for each in findings],
        "caveats": list(caveats),
    }


def summarise_scores(
    comparison: Comparison, records: Sequence[Record], draws: Bootstrap
) -> dict[str, Any]:
    """Return every number of a comparison as plain values: scores, intervals, p-values, costs."""
    own = own_entries(records, draws)
    entries = list(own.values())
    scores: dict[str, dict[str, Any]] = {}
    for entry in draws.entries:
        scores.setdefault(entry.system, {})[entry.rule] = {
            measure: {
                **asdict(draws.summary(entry, measure)),
                "by_seed": draws.scores(entry, measure),
            }
            for measure in MEASURES
        }
    return {
        "data": comparison.data,
        "data_hash": comparison.data_hash,
        "n_documents": dict(comparison.n_documents),
        "n_labels": comparison.n_labels,
        "n_unseen_sets": len(comparison.unseen_sets),
        "mean_words": comparison.mean_words,
        "corrections": CORRECTIONS,
        "n_draws": draws.n_draws,
        "own_rules": {name: entry.rule for name, entry in own.items()},
        "scores": scores,
        LOG_LIKELIHOOD: summarise_likelihoods(records, draws),
        "standings": {
            measure: _summarise_standing(draws, own, measure) for measure in MEASURES if entries
        },
        "differences": {
            measure: [
                {"first": first.system, "second": second.system, **asdict(difference)}
                for (first, second), difference in draws.pairs(entries, measure).items()
            ]
            for measure in MEASURES
        },
        "documents_needed": {
            measure: _summarise_power(draws, own, measure) for measure in MEASURES if entries
        },
        "costs": {record.name: asdict(record.costs) for record in records if record.costs},
        "failures": {record.name: asdict(record.failure) for record in records if record.failure},
    }


def _summarise_standing(draws: Bootstrap, own: Mapping[str, Entry], measure: str) -> dict[str, Any]:
    standing = draws.standing(list(own.values()), measure)
    return {
        "best": standing.best.system,
        "stands": standing.stands,
        "tied": [name for name, entry in own.items() if entry in standing.tied],
        "p": {entry.system: p for entry, p in standing.p.items()},
    }


def _summarise_power(draws: Bootstrap, own: Mapping[str, Entry], measure: str) -> dict[str, Any]:
    """Return how many test documents would separate the best from those that are level with it."""
    standing = draws.standing(list(own.values()), measure)
    needed = {
        name: documents_needed(draws, standing.best, entry, measure, len(standing.p))
        for name, entry in own.items()
        if entry in standing.tied
    }
    return {
        name: {
            "n_documents": each.n_documents if isfinite(each.n_documents) else None,
            "needs_seeds": each.needs_seeds,
        }
        for name, each in needed.items()
    }


def _read(folder: Path, on_damage: Callable[[str], None]) -> tuple[Comparison, list[Record]]:
    """Read a comparison; refuse a folder without one, or without runs."""
    if not (folder / COMPARISON_FILE).is_file():
        raise DataError(
            f"{folder} holds no comparison ({COMPARISON_FILE} is missing). Give the folder that "
            "'setrnn compare --out' wrote."
        )
    comparison = Comparison.load(folder)
    records = load_records(folder, comparison, on_damage)
    if not records:
        raise DataError(f"{folder} holds no runs yet. Run 'setrnn compare' first.")
    places = {name: place for place, name in enumerate(order_systems(records))}
    return comparison, sorted(records, key=lambda each: (places[each.method], each.seed))


def _check_target(target: Path, folder: Path) -> None:
    """Refuse to replace a folder that is not a report: its files would be lost."""
    target, folder = target.resolve(), folder.resolve()
    if target == folder or target in folder.parents:
        raise DataError(f"{target} holds the comparison. Give another folder for the report.")
    if target.is_dir() and any(target.iterdir()) and not (target / SUMMARY).is_file():
        raise DataError(
            f"{target} is not empty and holds no report. Give a new or an empty folder."
        )
