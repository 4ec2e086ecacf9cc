"""What a comparison runs: its data, its folder, its methods and seeds, and what is done already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from setrnn.comparison.description import complete, describe, is_same_data
from setrnn.comparison.records import (
    COMPARISON_FILE,
    MODELS,
    REPORT,
    RUNS,
    Comparison,
    Failure,
    Record,
    load_records,
    run_name,
)
from setrnn.comparison.run import Task
from setrnn.comparison.tuning import SPACES, TUNING
from setrnn.config import Config, TextSettings
from setrnn.data.cache import Source, open_prepared
from setrnn.data.formats import Dataset
from setrnn.data.prepared import Prepared
from setrnn.errors import ConfigError, DataError, nearest_name
from setrnn.methods import METHODS, find_method
from setrnn.plain_settings import flatten, from_dict, to_dict
from setrnn.progress import OnProgress, ignore_progress

ALL, LATER = "all", "later"  # groups of methods
PREPARED = "prepared"  # prepared data may be kept in the folder too
DIFFERENCES_SHOWN = 3
# The parts of `Record.treatment` that must be the same for all runs.
EQUAL_TREATMENT = ("n_trials", "budget_minutes")


def find_methods(names: str | Sequence[str], keeps_models: bool = True) -> list[str]:
    """Return the methods of "a,b,c" or of a list, in the order of the paper's tables.

    "all" stands for the paper's systems and ours, "later" for those of later papers. A mixture
    is made from kept models: without them, it is not in "all".
    """
    if isinstance(names, str):
        names = names.split(",")
    makable = [each for each in METHODS.values() if keeps_models or not each.is_mixture]
    groups = {
        ALL: [each.name for each in makable if not each.is_later],
        LATER: [each.name for each in makable if each.is_later],
    }
    given = [name.strip() for name in names if name.strip()]
    wanted = [method for name in given for method in groups.get(name, [name])]
    if not wanted:
        raise ConfigError('--methods names no method. Write "all", or names: br,set-rnn.')
    for name in wanted:
        if name not in METHODS:
            known = nearest_name(name, [*METHODS, *groups])
            raise ConfigError(f"There is no method '{name}'. {known}")
        if wanted.count(name) > 1:
            raise ConfigError(f"--methods names '{name}' twice: two runs would have one name.")
    return [name for name in METHODS if name in wanted]


def list_seeds(method: str, n_seeds: int) -> range:
    """Return the seeds of a method; a classical system does not depend on one and runs once."""
    return range(1 if find_method(method).family == "classical" else n_seeds)


def list_members(methods: Sequence[str], seed: int) -> tuple[str, ...]:
    """Return the runs that a mixture is made of: all others with the same seed, if they have one.

    Example:
        >>> list_members(["br", "set-rnn", "mixture"], seed=2)
        ('br-0', 'set-rnn-2')
    """
    return tuple(
        run_name(method, min(seed, list_seeds(method, seed + 1)[-1]))
        for method in methods
        if not find_method(method).is_mixture
    )


def find_start(method: str, seed: int, methods: Sequence[str], config: Config) -> str:
    """Return the run whose network a method starts from; "" if it trains that network itself.

    Example:
        >>> find_start("vinyals-max", 2, ["vinyals-uniform", "vinyals-max"], Config())
        'vinyals-uniform-2'
    """
    first = find_method(method).first_method
    if first is None or first not in methods or config.training.random_start != "trained":
        return ""
    return run_name(first, seed)


def check_members(methods: Sequence[str], keeps_models: bool) -> None:
    """Raise ConfigError if a mixture would have nothing to mix."""
    mixtures = [method for method in methods if find_method(method).is_mixture]
    if not mixtures:
        return
    if len(methods) - len(mixtures) < 2:
        raise ConfigError(
            f"'{mixtures[0]}' mixes the other systems of the comparison: name at least two others."
        )
    if not keeps_models:
        raise ConfigError(
            f"'{mixtures[0]}' is made from the models of the other systems: keep the models, or "
            f"leave out {mixtures[0]}."
        )


def open_comparable(
    source: Source,
    settings: TextSettings,
    folder: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Prepared:
    """Prepare data as `open_prepared` does; a missing valid part is cut from train.

    `Prepared.valid_is_cut` says whether it was cut, `describe_cut` says it in words.
    """
    if source.prepared_folder is not None:
        return _require_all_parts(open_prepared(source, settings, folder, on_progress))
    _require_test(source.open())
    return open_prepared(replace(source, cut_valid=True), settings, folder, on_progress)


def _require_all_parts(prepared: Prepared) -> Prepared:
    """Refuse a prepared folder without one of the parts: its vocabulary is that of all of train."""
    for name in ("train", "valid", "test"):
        if not prepared.description["n_documents"].get(name):
            raise DataError(
                f"{prepared.folder} was prepared without a '{name}' part, which a comparison "
                "needs. Give the data it was made from: a missing valid part is cut from train."
            )
    return prepared


def _require_test(dataset: Dataset) -> None:
    dataset.require("train")
    if "test" not in dataset.splits:
        kept = " --valid 0" if "valid" in dataset.splits else ""
        raise DataError(
            f"{dataset.place} has no 'test' part to compare on: found "
            f"{', '.join(sorted(dataset.splits))}. Cut one: setrnn data split {dataset.place} "
            f"FOLDER{kept}, then compare FOLDER."
        )


def refuse_other_folder(folder: Path) -> None:
    """Refuse a folder that holds anything other than a comparison."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file. Choose another --out.")
    if not folder.exists() or (folder / COMPARISON_FILE).is_file():
        return
    ours = {RUNS, MODELS, REPORT, PREPARED, TUNING}
    others = [each.name for each in folder.iterdir() if not each.name.startswith(".")]
    if not set(others) <= ours:
        raise DataError(f"{folder} exists and is not a comparison. Choose another --out.")


def open_comparison(folder: Path, prepared: Prepared) -> Comparison:
    """Create the folder of a comparison, or open an existing one."""
    refuse_other_folder(folder)
    made = describe(prepared)
    if not (folder / COMPARISON_FILE).is_file():
        made.save(folder)
        return made
    comparison = Comparison.load(folder)
    # The file of the comparison may have been edited: the hash is that of the data.
    if comparison.data_hash != made.data_hash or not is_same_data(comparison, made):
        raise DataError(
            f"{folder} compares systems on other data ({comparison.data}), or on the same data "
            "with other text settings. Choose another --out."
        )
    return complete(folder, comparison, made)


def complete_comparison(
    folder: Path,
    comparison: Comparison,
    records: Sequence[Record],
    source: Source,
    on_progress: OnProgress = ignore_progress,
) -> Comparison:
    """Add from the data what a comparison by an older version did not record about it."""
    text = next((each.config["text"] for each in records if "text" in each.config), None)
    settings = TextSettings() if text is None else from_dict(TextSettings, text)
    made = describe(open_comparable(source, settings, on_progress=on_progress))
    if not is_same_data(comparison, made):
        raise DataError(
            f"{source} is not the data of {folder} ({comparison.data}): its labels or its test "
            "documents differ. Give the data that was compared on."
        )
    return complete(folder, comparison, made)


def add_command(folder: Path, comparison: Comparison, command: str) -> Comparison:
    """Add a command to those that made the comparison, once."""
    if command not in comparison.commands:
        comparison = replace(comparison, commands=(*comparison.commands, command))
        comparison.save(folder)
    return comparison


@dataclass(frozen=True)
class Plan:
    """The requested runs: those that are done, and those still to do."""

    done: Sequence[Record]
    tasks: Sequence[Task]  # in descending order of expected time


def make_plan(folder: Path, comparison: Comparison, tasks: Sequence[Task]) -> Plan:
    """Find the runs that are done; refuse those made with other settings.

    A run that failed is to be done again, and so is a mixture of other members.
    """
    records = {record.name: record for record in load_records(folder, comparison)}
    done: list[Record] = []
    left: list[Task] = []
    for task in tasks:
        record = records.get(task.name)
        others = [] if record is None else record.treatment.get("members", [])
        if record is None or record.failure is not None or others != list(task.members):
            left.append(task)
        else:
            _refuse_difference(
                folder, record, flatten(record.config), flatten(to_dict(task.config))
            )
            done.append(record)
    return Plan(done, longest_first(left, records.values()))


def longest_first(tasks: Sequence[Task], records: Iterable[Record] = ()) -> list[Task]:
    """Sort tasks in descending order of expected time: parallel ones then end together."""
    expected = expect_seconds([task.method for task in tasks], records)
    return sorted(tasks, key=lambda task: -expected[task.method])


def expect_seconds(methods: Iterable[str], records: Iterable[Record] = ()) -> dict[str, float]:
    """Return the expected time of one run per method, from runs that are done.

    A method without a run is scaled from the others by the relative costs of the methods. Without
    any run, the numbers are these relative costs.
    """
    measured: dict[str, list[float]] = {}
    for record in records:
        if record.costs is not None and record.failure is None and record.method in METHODS:
            measured.setdefault(record.method, []).append(record.costs.total_seconds)
    known = {method: sum(each) / len(each) for method, each in measured.items()}
    costs = sum(METHODS[method].relative_cost for method in known)
    scale = sum(known.values()) / costs if costs else 1.0
    return {method: known.get(method, scale * METHODS[method].relative_cost) for method in methods}


def failed_record(task: Task, comparison: Comparison, failure: Failure) -> Record:
    """Return the record of a run that failed."""
    return Record(
        method=task.method,
        seed=task.seed,
        data_hash=comparison.data_hash,
        own_rule=find_method(task.method).rule,
        config=to_dict(task.config),
        treatment=task.treatment,
        trials=task.trials,
        failure=failure,
    )


def refuse_unequal_treatment(
    folder: Path, records: Iterable[Record], treatment: Mapping[str, Any], config: Config
) -> None:
    """Refuse to add runs to runs that had other settings, another budget or other trials."""
    for record in records:
        if record.failure is None and not record.is_added:
            is_searched = bool(record.treatment.get("n_trials") or treatment.get("n_trials"))
            before = _treatment(record.treatment, record.config, is_searched)
            now = _treatment(treatment, to_dict(config), is_searched)
            _refuse_difference(folder, record, before, now)


def _treatment(
    treatment: Mapping[str, Any], config: Mapping[str, Any], is_searched: bool
) -> dict[str, Any]:
    """Return what must be the same for all runs: not the seed, nor searched settings."""
    searched = {key for space in SPACES.values() for key in space} if is_searched else set()
    own = {"seed", *searched}
    settings = {name: value for name, value in flatten(config).items() if name not in own}
    return {name: treatment.get(name) for name in EQUAL_TREATMENT} | settings


def _refuse_difference(
    folder: Path, record: Record, before: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    differing = [name for name in now if before.get(name) != now[name]]
    if not differing:
        return
    shown = [
        f"{name} was {before.get(name)}, now {now[name]}" for name in differing[:DIFFERENCES_SHOWN]
    ]
    if len(differing) > len(shown):
        shown.append(f"and {len(differing) - len(shown)} more")
    raise ConfigError(
        f"{folder} has the run {record.name} with other settings: {'; '.join(shown)}. "
        "Choose another --out, or give the settings it was made with."
    )
