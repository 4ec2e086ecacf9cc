"""Train many systems on one dataset, measure them all, make the page."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setrnn.cli.compare_display import ComparisonDisplay, comparison_display
from setrnn.cli.console import note, scores_table, stdout, warn
from setrnn.cli.progress import shared_progress, terminal_progress
from setrnn.errors import ConfigError, StoppedError, TrainingError
from setrnn.metrics import MEASURES

if TYPE_CHECKING:
    from setrnn.comparison.added import Addition
    from setrnn.comparison.plan import Plan
    from setrnn.comparison.pool import Ended, Job
    from setrnn.comparison.records import Comparison, Failure, Record
    from setrnn.comparison.run import Task
    from setrnn.config import Config
    from setrnn.data.cache import Source
    from setrnn.data.prepared import Prepared


@dataclass(frozen=True)
class Request:
    """What is to be compared, and how."""

    source: Source
    methods: Sequence[str]
    out: Path
    config: Config
    n_seeds: int = 1
    n_jobs: int = 1
    budget_minutes: float | None = None
    n_trials: int = 0
    added: Sequence[Addition] = ()  # predictions from elsewhere
    device: str = "auto"
    keep_models: bool = True
    preset: str = "default"
    overrides: Sequence[str] = ()
    prepared_in: Path | None = None  # where prepared folders lie; the cache if not given

    @property
    def treatment(self) -> dict[str, Any]:
        """What all runs have in common beside their settings; part of each record."""
        return {
            "preset": self.preset,
            "settings": list(self.overrides),
            "n_trials": self.n_trials,
            "budget_minutes": self.budget_minutes,
        }


@dataclass(frozen=True)
class Compared:
    """What a comparison came to."""

    comparison: Comparison
    records: Sequence[Record]  # all of its folder
    page: Path


def compare_systems(request: Request) -> Compared:
    """Run what is not done yet, and make the report; refuse bad input before anything is run."""
    from setrnn.comparison.comparable import cut_note, open_comparable
    from setrnn.comparison.plan import (
        make_plan,
        open_comparison,
        refuse_other_folder,
        refuse_unequal_treatment,
        with_command,
    )
    from setrnn.comparison.records import load_records
    from setrnn.methods import find_method
    from setrnn.report.build import build_report
    from setrnn.tagging.train import open_training_data
    from setrnn.training.start import check_method

    refuse_other_folder(request.out)
    if request.config.classical.tune:
        raise ConfigError("classical.tune goes with train. To search settings here: --tune N.")
    for method in request.methods:
        check_method(find_method(method), request.config)
    _check_device(request)
    with terminal_progress() as show:
        prepared, config = open_training_data(
            request.source,
            request.config,
            request.overrides,
            request.prepared_in,
            open_comparable,
            show,
        )
    if prepared.valid_is_cut:
        note(cut_note(prepared))
    comparison = open_comparison(request.out, prepared)
    tasks = _tasks(request, prepared, config)
    refuse_unequal_treatment(request.out, comparison, request.treatment, config)
    if not request.n_trials:
        make_plan(request.out, comparison, tasks)  # refused now rather than later
    _add_predictions(request, comparison)
    comparison = with_command(request.out, comparison, _command())
    with _way_to_go_on(request.out):
        _make_vectors(request, prepared, config)
        failed: list[Record] = []
        if request.n_trials:
            tasks, failed = _tuned(request, comparison, tasks)
        plan = make_plan(request.out, comparison, tasks)
        ended = [*failed, *plan.done, *_run(request, comparison, plan)]
    records = load_records(request.out, comparison)
    if ended and all(record.failure is not None for record in ended):
        _show_failures(ended)
        raise TrainingError(f"Every run failed ({len(ended)}). {request.out}/runs says where.")
    note("Making the report")
    return Compared(comparison, records, build_report(request.out).page)


def show_results(compared: Compared) -> None:
    """Print a table of all systems, each by its own rule, and the runs that failed."""
    rows = mean_scores(compared.records)
    what = " (synthetic)" if compared.comparison.synthetic else ""
    title = f"Results on the test part of {compared.comparison.data}{what}"
    stdout.print()
    if rows:
        stdout.print(scores_table(title, rows))
    _show_failures(compared.records)


def mean_scores(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Return each system's measures on test by its own rule, the mean over its seeds."""
    from setrnn.methods import METHODS

    ranks = {method: rank for rank, method in enumerate(METHODS)}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for record in sorted(records, key=lambda record: ranks.get(record.method, len(ranks))):
        if record.failure is None:
            found.setdefault(record.method, []).append(record.scores["test"][record.own_rule])
    return {
        method: {key: sum(each[key] for each in rows) / len(rows) for key in MEASURES}
        for method, rows in found.items()
    }


def _show_failures(records: Sequence[Record]) -> None:
    for record in records:
        if record.failure is not None:
            warn(f"{record.name} failed: {record.failure.message}")


def _command() -> str:
    """Return the command as it was given, without where the program lies."""
    return shlex.join(["setrnn", *sys.argv[1:]])


def _check_device(request: Request) -> None:
    """Refuse a device that is not there, before the data is read."""
    from setrnn.methods import find_method

    if any(find_method(method).is_network for method in request.methods):
        from setrnn.model.devices import find_device

        find_device(request.device)


@contextmanager
def _way_to_go_on(out: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(
            f"Stopped. {out} keeps what is done: the same command goes on."
        ) from None


def _tasks(request: Request, prepared: Prepared, config: Config) -> list[Task]:
    """Make the tasks of all runs that are asked for."""
    from setrnn.comparison.plan import seeds_of
    from setrnn.comparison.run import Task

    budget = request.budget_minutes
    return [
        Task(
            prepared=prepared.folder,
            folder=request.out,
            method=method,
            seed=seed,
            config=replace(config, seed=seed),
            device=request.device,
            budget_seconds=None if budget is None else 60 * budget,
            n_jobs=request.n_jobs,
            keep_model=request.keep_models,
            treatment=request.treatment,
        )
        for method in request.methods
        for seed in seeds_of(method, request.n_seeds)
    ]


def _add_predictions(request: Request, comparison: Comparison) -> None:
    """Make records of the predictions that came from elsewhere."""
    if request.added:
        from setrnn.comparison.added import added_records
        from setrnn.comparison.records import load_records

        present = load_records(request.out, comparison)
        for record in added_records(comparison, request.added, present):
            record.save(request.out)


def _make_vectors(request: Request, prepared: Prepared, config: Config) -> None:
    """Make the word vectors that all runs share."""
    from setrnn.data.vectors import word_vectors
    from setrnn.methods import find_method

    needs_vectors = any(find_method(method).is_network for method in request.methods)
    if not needs_vectors or config.encoder.is_pretrained or config.vectors.source == "none":
        return
    with ExitStack() as shown:
        show: Callable[[str, float], None] | None = None

        def tell(message: str, share: float) -> None:  # nothing where they are made already
            nonlocal show
            show = show or shown.enter_context(shared_progress())
            show(f"word vectors: {message}", share)

        word_vectors(prepared, config.vectors, tell)


def _tuned(
    request: Request, comparison: Comparison, tasks: Sequence[Task]
) -> tuple[list[Task], list[Record]]:
    """Search the settings of each method: its tasks with them, or records of their failure."""
    from setrnn.comparison.jobs import tuning_job
    from setrnn.comparison.plan import failed_record, longest_first
    from setrnn.comparison.records import load_records

    first = {task.method: task for task in reversed(tasks)}
    jobs = [tuning_job(task, request.n_trials) for task in longest_first([*first.values()], {})]
    found: dict[str, Any] = {}
    failures: dict[str, Failure] = {}

    def keep(ended: Ended) -> str:
        if ended.failure is None:
            found[ended.job.name] = ended.value
        else:
            failures[ended.job.name] = ended.failure
        return f"settings chosen of {request.n_trials} trials"

    names = {job.name: job.name for job in jobs}
    with comparison_display("searches", names, request.n_jobs, {}) as display:
        _watch(jobs, request.n_jobs, display, keep)
    tuned = [
        replace(
            task,
            config=replace(found[task.method].config, seed=task.seed),
            trials=found[task.method].trials,
        )
        for task in tasks
        if task.method in found
    ]
    done = {each.name for each in load_records(request.out, comparison) if each.failure is None}
    failed = [
        failed_record(task, comparison, failures[task.method])
        for task in tasks
        if task.method in failures and task.name not in done
    ]
    for record in failed:
        record.save(request.out)
    return tuned, failed


def _run(request: Request, comparison: Comparison, plan: Plan) -> list[Record]:
    """Run what is left of the plan; write each record as soon as its run ends."""
    from setrnn.comparison.jobs import run_job
    from setrnn.comparison.plan import failed_record, measured_seconds

    if plan.done:
        note(f"{len(plan.done)} runs are done already.")
    tasks = {task.name: task for task in plan.tasks}
    records: list[Record] = []

    def keep(ended: Ended) -> str:
        task = tasks[ended.job.name]
        if ended.failure is None:
            record: Record = ended.value
        else:
            record = failed_record(task, comparison, ended.failure)
        record.save(request.out)
        records.append(record)
        if ended.failure is not None:
            return ended.failure.message
        for checkpoints in task.run_folder.parent.glob(f"{task.name}-*.run"):
            shutil.rmtree(checkpoints, ignore_errors=True)  # the record has all of it
        return _result(record)

    jobs = [run_job(task) for task in plan.tasks]
    methods = {name: task.method for name, task in tasks.items()}
    measured = measured_seconds(plan.done)
    with comparison_display("runs", methods, request.n_jobs, measured, len(plan.done)) as display:
        _watch(jobs, request.n_jobs, display, keep)
    return records


def _result(record: Record) -> str:
    score = record.scores["test"][record.own_rule]["instance_f1"]
    return f"instance-F1 {score:.3f} (rule {record.own_rule})"


def _watch(
    jobs: Sequence[Job],
    n_jobs: int,
    display: ComparisonDisplay,
    keep: Callable[[Ended], str],
) -> None:
    """Run jobs and show them; `keep` gets what came of each, and says it in words."""
    from setrnn.comparison.pool import Ended, Progressed, Started, run_jobs

    with closing(run_jobs(jobs, n_jobs, _say_stopping)) as events:
        for event in events:
            if isinstance(event, Started):
                display.started(event.job.name)
            elif isinstance(event, Progressed):
                display.progressed(event.job.name, event.activity, event.share)
            elif isinstance(event, Ended):
                display.ended(event.job.name, event.seconds, keep(event), event.failure)
            else:
                display.update()


def _say_stopping() -> None:
    note("Stopping: what runs saves where it stands. Ctrl-C again ends it at once.")
