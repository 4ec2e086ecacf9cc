"""Train many systems on the same data and measure them: `setrnn.compare`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from setrnn.comparison.added import check_names, make_added_records
from setrnn.comparison.plan import (
    ALL,
    Plan,
    add_command,
    check_members,
    expect_seconds,
    failed_record,
    find_methods,
    list_members,
    list_seeds,
    longest_first,
    make_plan,
    open_comparable,
    open_comparison,
    refuse_other_folder,
    refuse_unequal_treatment,
)
from setrnn.comparison.records import (
    COMPARISON_FILE,
    RUNS,
    Comparison,
    Failure,
    Record,
    load_records,
    order_systems,
)
from setrnn.comparison.run import Task, run
from setrnn.comparison.tuning import TUNING, Tuned, tune_method
from setrnn.config import Config
from setrnn.data.folders import locked
from setrnn.errors import ConfigError, StoppedError, TrainingError
from setrnn.methods import find_method
from setrnn.metrics import MEASURES
from setrnn.model.devices import n_cores
from setrnn.progress import Note, OnProgress, ignore_progress
from setrnn.tagging.fitting import check_training
from setrnn.tagging.html import write_table, write_text
from setrnn.tagging.opening import (
    Data,
    Settings,
    choose_config,
    list_overrides,
    make_source,
    make_vectors,
    open_training_data,
)
from setrnn.training.pool import Ended, Job, Overall, run_jobs

N_SEEDS = 3
MOST_RUNS = 10_000  # per method
# A small network that two cores train in a minute or two; chosen on the valid part of newsroom.
QUICK_SETTINGS = {
    "vectors.dimensions": 100,
    "model.encoder_units": 96,
    "model.decoder_units": 96,
    "model.decoder_layers": 1,
    "model.dropout": 0.2,
    "model.word_dropout": 0.0,
    "search.beam_width": 6,
    "training.epochs": 5,
    "training.batch_size": 32,
    "training.learning_rate": 4e-3,
}
QUICK_SEEDS, QUICK_JOBS = 1, 2
# Training ends by itself within its budget; a run that takes far longer is killed.
LIMIT_FACTOR, LIMIT_SECONDS = 2, 60


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """The runs of a comparison, read from its folder."""

    folder: Path
    comparison: Comparison  # the data that all runs share
    records: Sequence[Record]  # one per run, also of earlier calls with the same folder

    def __repr__(self) -> str:
        n_failed = len(self.failures)
        return f"<ComparisonResult {self.folder}: {len(self.records)} runs, {n_failed} failed>"

    def _repr_html_(self) -> str:
        rows = [
            [write_text(method), *(f"{scores[key]:.3f}" for key in MEASURES)]
            for method, scores in self.mean_scores().items()
        ]
        table = write_table(["", *MEASURES.values()], rows)
        failures = "".join(
            f"<li>{write_text(name)} failed: {write_text(each.message)}</li>"
            for name, each in self.failures.items()
        )
        return f"<p>{write_text(repr(self))}</p>{table}<ul>{failures}</ul>"

    @property
    def failures(self) -> dict[str, Failure]:
        """The failed runs by their names."""
        return {each.name: each.failure for each in self.records if each.failure is not None}

    def mean_scores(self) -> dict[str, dict[str, float]]:
        """Return the measures on test by each system's own rule: the mean over its seeds."""
        succeeded = [record for record in self.records if record.failure is None]
        means = {}
        for method in order_systems(succeeded):
            runs = [record for record in succeeded if record.method == method]
            rows = [record.scores["test"][record.own_rule] for record in runs]
            means[method] = {key: sum(row[key] for row in rows) / len(rows) for key in MEASURES}
        return means


def compare(
    data: Data,
    methods: str | Sequence[str] = "all",
    *,
    out: str | Path,
    seeds: int | None = None,
    jobs: int | None = None,
    budget: float | None = None,
    tune: int = 0,
    added: Mapping[str, str | Path] | None = None,
    quick: bool = False,
    valid: str | Path | None = None,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: Settings = (),
    device: str = "auto",
    keep_models: bool = True,
    prepared_in: str | Path | None = None,
    command: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> ComparisonResult:
    """Train systems on the same data, and measure each on the test part by every rule.

    Each run is a process of its own and leaves a record in `out` as soon as it ends. A run that
    fails does not stop the others. After Ctrl-C, which raises `StoppedError`, the same call
    continues the comparison. `setrnn.build_report(out)` makes tables, figures and a page from the
    records. A script must call this function under `if __name__ == "__main__":`, since every new
    process imports the script.

    Args:
        data: a file, a folder with train/valid/test files, a prepared folder, `hf:NAME` or
            "newsroom"; a `Source` says how to read it. Without a valid part, one is cut from train.
        methods: "all", or names of `setrnn.methods.METHODS` as a list or as "a,b,c"; mixture
            mixes the others.
        out: the folder of the comparison; a comparison already there is continued.
        seeds: runs per network, with seeds 0 to N-1; 3 by default, 1 with `quick`.
        jobs: runs at a time; 1 by default, 2 with `quick`.
        budget: minutes of training per run, after which its best epoch so far counts.
        tune: trials per system to search its settings on the valid part (needs Optuna).
        added: files with predictions of other tools, by the names of their rows.
        quick: small settings for a first look.
        valid: a file that becomes the valid part.
        preset: the settings to start from: default, paper or transformer.
        config: all settings, or a JSON file of settings to apply after the preset.
        settings: single settings by their dotted names, such as `{"training.epochs": 10}`, or as
            `["training.epochs=10"]`.
        device: where to compute: auto, cpu or cuda.
        keep_models: keep the trained models in `out`.
        prepared_in: the folder of prepared data; the cache by default.
        command: the command to record as the origin of the comparison; this call by default.
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = setrnn.compare(
        ...         "newsroom", ["br"], out=folder, settings={"classical.max_pairs": 0}
        ...     )
        >>> round(result.mean_scores()["br"]["instance_f1"], 1)
        0.9
    """
    if budget is not None and not 0 < budget < float("inf"):
        raise ConfigError(f"budget must be above 0 minutes, got {budget:g}.")
    for name, value, least in (("seeds", seeds, 1), ("jobs", jobs, 1), ("tune", tune, 0)):
        if value is not None and not least <= value <= MOST_RUNS:
            raise ConfigError(
                f"{name} must be at least {least} and at most {MOST_RUNS:,}, got {value}."
            )
    if quick and (preset != "default" or config is not None):
        raise ConfigError("quick has settings of its own: omit preset and config.")
    overrides = [*list_overrides(QUICK_SETTINGS if quick else ()), *list_overrides(settings)]
    config = choose_config(preset, config, overrides)
    names, folder, source = find_methods(methods), Path(out), make_source(data, valid)
    if methods == ALL and not keep_models:
        names = [name for name in names if not find_method(name).is_mixture]
    files = {name: Path(file) for name, file in (added or {}).items()}
    check_names(list(files))
    refuse_other_folder(folder)
    if config.classical.tune:
        raise ConfigError("classical.tune is for train. To search settings here: --tune N.")
    check_members(names, keep_models)
    for method in names:
        if not find_method(method).is_mixture:
            check_training(find_method(method), config, device, resume=False)
    cache = None if prepared_in is None else Path(prepared_in)
    prepared, config = open_training_data(
        source, config, overrides, cache, open_comparable, on_progress
    )
    treatment = {
        "preset": preset,
        "settings": overrides,
        "n_trials": tune,
        "budget_minutes": budget,
    }
    n_seeds = seeds or (QUICK_SEEDS if quick else N_SEEDS)
    if not any(find_method(method).is_network for method in names):
        n_seeds = 1
    tasks = [
        Task(
            prepared=prepared.folder,
            folder=folder,
            method=method,
            seed=seed,
            config=replace(config, seed=seed),
            device=device,
            budget_seconds=None if budget is None else 60 * budget,
            n_jobs=jobs or (min(QUICK_JOBS, n_cores()) if quick else 1),
            keep_model=keep_models,
            treatment=treatment,
            members=list_members(names, seed) if find_method(method).is_mixture else (),
        )
        for method in names
        for seed in list_seeds(method, n_seeds)
    ]
    # A second comparison in the same folder would do the same runs, and lose records.
    busy = " Wait until it ends, or choose another --out."
    with locked(folder / COMPARISON_FILE, wait=False, way_out=busy):
        comparison = open_comparison(folder, prepared)
        records = load_records(folder, comparison, lambda text: on_progress(Note(text, True)))
        refuse_unequal_treatment(folder, records, treatment, config)
        if not tune:
            make_plan(folder, comparison, tasks)  # refuses other settings before anything runs
        if files:
            for record in make_added_records(comparison, files, records):
                record.save(folder)
        if command is None:
            command = f"setrnn.compare({str(source)!r}, {names!r}, out={str(out)!r}, ...)"
        comparison = add_command(folder, comparison, command)
        with _explained_stop(folder):
            if any(find_method(method).is_network for method in names):
                make_vectors(prepared, config, on_progress)  # before the runs, which share them
            _run_tasks(comparison, tasks, tune, on_progress)
        return ComparisonResult(folder, comparison, load_records(folder, comparison))


@contextmanager
def _explained_stop(out: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(
            f"Stopped. {out} keeps what is done: the same command continues."
        ) from None


def _run_tasks(
    comparison: Comparison, tasks: Sequence[Task], n_trials: int, on_progress: OnProgress
) -> None:
    """Search settings if there are trials, then run what is not done yet."""
    folder = tasks[0].folder
    failed: list[Record] = []
    if n_trials:
        mixtures = [task for task in tasks if task.members]  # they have no settings to search
        trained = [task for task in tasks if not task.members]
        tasks, failed = _tune_all(comparison, trained, n_trials, on_progress)
        tasks = [*tasks, *mixtures]
    plan = make_plan(folder, comparison, tasks)
    ended = [*failed, *plan.done, *_run_all(folder, comparison, plan, on_progress)]
    failures = [(each.name, each.failure) for each in ended if each.failure is not None]
    if failures and len(failures) == len(ended):
        name, failure = failures[0]
        message = failure.message.rstrip(".")
        raise TrainingError(
            f"Every run failed ({len(ended)}). {name}: {message}. See {folder / RUNS}."
        )


def _tune_all(
    comparison: Comparison, tasks: Sequence[Task], n_trials: int, on_progress: OnProgress
) -> tuple[list[Task], list[Record]]:
    """Search the settings of each method; return its tasks with them, or records of failures."""
    folder, n_jobs = tasks[0].folder, tasks[0].n_jobs
    first = {task.method: task for task in reversed(tasks)}
    jobs = [_tuning_job(task, n_trials) for task in longest_first([*first.values()])]
    found: dict[str, Tuned] = {}
    failures: dict[str, Failure] = {}

    def keep(ended: Ended) -> str:
        if ended.failure is None:
            found[ended.job.name] = ended.value
        else:
            failures[ended.job.name] = ended.failure
        return f"settings chosen from {n_trials} trials"

    costs = expect_seconds(job.name for job in jobs)
    _run_jobs(jobs, n_jobs, Overall("searches", costs, on_progress), keep)
    tuned = [
        replace(
            task,
            config=replace(found[task.method].config, seed=task.seed),
            trials=found[task.method].trials,
        )
        for task in tasks
        if task.method in found
    ]
    done = {each.name for each in load_records(folder, comparison) if each.failure is None}
    failed = [
        failed_record(task, comparison, failures[task.method])
        for task in tasks
        if task.method in failures and task.name not in done
    ]
    for record in failed:
        record.save(folder)
    return tuned, failed


def _run_all(
    folder: Path, comparison: Comparison, plan: Plan, on_progress: OnProgress
) -> list[Record]:
    """Run the tasks of the plan, and write each record as soon as its run ends."""
    if plan.done:
        on_progress(Note(f"{len(plan.done)} runs are done already."))
    for record in plan.done:
        _remove_checkpoints(record, folder)  # left if a process was killed just before
    tasks = {task.name: task for task in plan.tasks}
    records: list[Record] = []

    def keep(ended: Ended) -> str:
        task = tasks[ended.job.name]
        if ended.failure is None:
            record: Record = ended.value
        else:
            record = failed_record(task, comparison, ended.failure)
        record.save(task.folder)
        records.append(record)
        if ended.failure is not None:
            return ended.failure.message
        _remove_checkpoints(record, task.folder)
        score = record.scores["test"][record.own_rule]["instance_f1"]
        return f"instance-F1 {score:.3f} (rule {record.own_rule})"

    seconds = expect_seconds([task.method for task in plan.tasks], plan.done)
    costs = {task.name: seconds[task.method] for task in plan.tasks}
    overall = Overall("runs", costs, on_progress, len(plan.done))
    n_jobs = max((task.n_jobs for task in plan.tasks), default=1)
    for is_mixture in (False, True):  # mixtures need the models of the others
        jobs = [_run_job(task) for task in plan.tasks if bool(task.members) == is_mixture]
        if n_jobs > 1:  # side by side, the longest must not begin last
            jobs.sort(key=lambda job: costs[job.name], reverse=True)
        _run_jobs(jobs, n_jobs, overall, keep)
    return records


def _remove_checkpoints(record: Record, folder: Path) -> None:
    """Remove the checkpoints of a run that is done."""
    for checkpoints in (folder / RUNS).glob(f"{record.name}-*.run"):
        shutil.rmtree(checkpoints, ignore_errors=True)


def _run_job(task: Task) -> Job:
    """Return the job of one run."""
    log = task.folder / RUNS / f"{task.name}.log"
    return Job(task.name, partial(run, task), log, _limit_seconds(task), "runs")


def _tuning_job(task: Task, n_trials: int) -> Job:
    """Return the job that searches the settings of a method."""
    log = task.folder / TUNING / f"{task.method}.log"
    limit = _limit_seconds(task, n_trials)
    return Job(task.method, partial(tune_method, task, n_trials), log, limit, "searches")


def _limit_seconds(task: Task, n_trainings: int = 1) -> float | None:
    """Return the time after which a job is killed."""
    if task.budget_seconds is None or task.members:
        return None
    return n_trainings * (LIMIT_FACTOR * task.budget_seconds + LIMIT_SECONDS)


def _run_jobs(
    jobs: Sequence[Job], n_jobs: int, overall: Overall, keep: Callable[[Ended], str]
) -> None:
    """Run jobs; `keep` stores the result of each and returns it in words."""
    n_threads = max(1, n_cores() // n_jobs)
    with closing(run_jobs(jobs, n_jobs, overall, n_threads)) as all_ended:
        for ended in all_ended:
            overall.end(ended, keep(ended))
