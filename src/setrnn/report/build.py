"""Build the report of a comparison from its records: tables, figures, a summary, one page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from markupsafe import Markup

from setrnn import __version__
from setrnn.comparison.records import COMPARISON_FILE, REPORT, Comparison, load_records
from setrnn.data.disk import whole_folder
from setrnn.errors import DataError, count_of
from setrnn.metrics import MEASURES
from setrnn.progress import OnProgress, ignore_progress, show_step
from setrnn.report.answer import MEASURE, write_answer
from setrnn.report.drawing import in_page_colours
from setrnn.report.figures import Figure, draw_figures
from setrnn.report.findings import Finding, find, findings_table
from setrnn.report.html import render
from setrnn.report.study import CLASSICAL, Study
from setrnn.report.summary import SETTINGS, SUMMARY, split_settings, summarise
from setrnn.report.table import FORMS, Table
from setrnn.report.tables import MAIN, make_tables, sequences_table
from setrnn.report.wording import join_names

PAGE = "index.html"
MAX_MESSAGE = 200  # characters of a failure


@dataclass(frozen=True)
class Report:
    """A report that was written."""

    page: Path
    files: tuple[Path, ...]
    answer: Sequence[str]  # which system to use, in sentences
    systems: Table | None  # the main table; None where no run succeeded
    findings: Sequence[Finding]  # of the paper, tested on this data
    caveats: tuple[str, ...]


def build_report(
    folder: str | Path,
    out: str | Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Report:
    """Read the records of a comparison and write its report, completely or not at all.

    Args:
        folder: the folder of the comparison.
        out: where to write the report, instead of `folder/report`.
        on_progress: called with the progress.

    Example:
        >>> import setrnn
        >>> report = setrnn.build_report("results")  # doctest: +SKIP
        >>> report.answer[0]  # doctest: +SKIP
        'Use set-rnn.'
    """
    folder = Path(folder)
    damage: list[str] = []
    target = folder / REPORT if out is None else Path(out)
    _check_target(target, folder)
    step = partial(show_step, "the report", on_progress=on_progress, part_of="comparing")
    with step("intervals and p-values"):
        study = _read(folder, damage.append)
    with step("tables"):
        findings = find(study)
        tables = [*make_tables(study), findings_table(findings)]
        on_page = (*tables, sequences_table(study))  # which has texts: it is on the page alone
        shown = {each.name: each for each in on_page if each.rows}
        if MAIN in shown:
            shown[MAIN] = shown[MAIN].sorted_by(f"{MEASURES[MEASURE]} (rule f1)")
    with step("figures"):
        figures = draw_figures(study)
    caveats = [*damage, *list_caveats(study)]
    summary = summarise(study, findings, caveats)
    files = {
        f"tables/{table.name}.{ending}": form(table)
        for table in tables
        if table.rows
        for ending, form in FORMS.items()
    }
    files |= {f"figures/{figure.name}.svg": figure.svg for figure in figures}
    files[SUMMARY] = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
    answer = write_answer(study)
    files[PAGE] = _render_page(study, answer, caveats, shown, figures, sorted(files))
    with whole_folder(target) as temporary:
        for name, text in files.items():
            file = temporary / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return Report(
        page=target / PAGE,
        files=tuple(target / name for name in files),
        answer=answer,
        systems=shown.get(MAIN) if study.systems else None,
        findings=findings,
        caveats=tuple(caveats),
    )


def _render_page(
    study: Study,
    answer: Sequence[str],
    caveats: Sequence[str],
    tables: Mapping[str, Table],
    figures: Sequence[Figure],
    files: Sequence[str],
) -> str:
    """Return the page: the answer on one screen, all else folded; it links to `files` beside it."""
    return render(
        "report.html",
        title=f"Systems compared on {study.comparison.data}",
        about=_describe_comparison(study),
        version=__version__,
        answer=answer,
        caveats=caveats,
        tables=tables,
        figures={figure.name: figure for figure in figures},
        # The texts of a figure were escaped when it was drawn.
        drawings={figure.name: Markup(in_page_colours(figure.svg)) for figure in figures},
        has_runs=bool(study.systems),
        comparison=study.comparison,
        settings=[
            (title, split_settings(study.records, field)) for field, title in SETTINGS.items()
        ],
        files=files,
        count=count_of,
    )


def _describe_comparison(study: Study) -> str:
    """Write the line below the title: the systems, the runs, the data."""
    comparison = study.comparison
    n_runs = sum(len(system.runs) for system in study.systems.values())
    train, valid = (comparison.n_documents.get(part, 0) for part in ("train", "valid"))
    kind = "synthetic documents" if comparison.synthetic else "documents"
    return (
        f"{count_of(len(study.systems), 'system')}, {count_of(n_runs, 'run')}, "
        f"{count_of(comparison.n_labels, 'label')}; {train:,} train, {valid:,} valid and "
        f"{study.n_documents:,} test {kind}."
    )


def list_caveats(study: Study) -> Iterator[str]:
    """Yield what limits what the numbers show: about the data, failures, seeds and treatment."""
    if study.comparison.synthetic:
        yield "The data is synthetic: it does not show how systems rank on real texts."
    if study.comparison.valid_is_cut:
        yield "The data had no valid part: it was cut from train."
    for record in study.records:
        if record.failure is not None:
            message = " ".join(record.failure.message.split())[:MAX_MESSAGE]
            yield f"{record.name} failed ({record.failure.kind}: {message})."
    runs = [run for system in study.systems.values() for run in system.runs]
    n_runs = Counter(run.method for run in runs if not run.is_added)
    groups = {
        "Trained with one seed, so that intervals cover documents alone": [
            name for name, n in n_runs.items() if n == 1 and name not in CLASSICAL
        ],
        "Training was ended by the budget": [
            run.name for run in runs if run.treatment.get("was_cut_by_budget")
        ],
        "Predictions made elsewhere, perhaps with other training data": [
            run.method for run in runs if run.is_added
        ],
        "Versions of setrnn that differ from this one": sorted(
            {run.setrnn for run in runs} - {__version__}
        ),
    }
    for what, names in groups.items():
        if names:
            yield f"{what}: {join_names(names)}."


def _read(folder: Path, on_damage: Callable[[str], None]) -> Study:
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
    return Study.of(comparison, records)


def _check_target(target: Path, folder: Path) -> None:
    """Refuse to replace a folder that is not a report: its files would be lost."""
    target, folder = target.resolve(), folder.resolve()
    if target == folder or target in folder.parents:
        raise DataError(f"{target} holds the comparison. Give another folder for the report.")
    if target.is_dir() and any(target.iterdir()) and not (target / SUMMARY).is_file():
        raise DataError(
            f"{target} is not empty and holds no report. Give a new or an empty folder."
        )
