"""Which runs a comparison has, which are done already, and the folder they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from setrnn.comparison.records import (
    COMPARISON_FILE,
    MODELS,
    REPORT,
    RUNS,
    Comparison,
    Failure,
    Record,
    load_records,
)
from setrnn.comparison.run import Task
from setrnn.comparison.time_left import expected_seconds
from setrnn.comparison.tuning import SPACES, TUNING
from setrnn.config import Config, settings_hash, to_dict
from setrnn.data.prepared import Prepared
from setrnn.errors import ConfigError, DataError
from setrnn.methods import METHODS, find_method

ALL = "all"
PREPARED = "prepared"  # may lie in the folder too
DIFFERENCES_SHOWN = 3
# What must be the same for all runs: how they are treated, beside their settings.
EQUAL_TREATMENT = ("n_trials", "budget_minutes")


def find_methods(names: str) -> list[str]:
    """Return the methods of `all` or `a,b,c`, in the order of the paper's tables."""
    if names.strip() == ALL:
        return list(METHODS)
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise ConfigError("--methods names no method. Write all, or names: br,set-rnn.")
    for name in wanted:
        find_method(name)
        if wanted.count(name) > 1:
            raise ConfigError(f"--methods names '{name}' twice: two runs would have one name.")
    return [name for name in METHODS if name in wanted]


def seeds_of(method: str, n_seeds: int) -> range:
    """Return the seeds a method is run with: there is no chance in a classical one."""
    return range(n_seeds if find_method(method).is_network else 1)


def refuse_other_folder(folder: Path) -> None:
    """Refuse a folder that holds anything else than a comparison."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file. Name another --out.")
    if not folder.exists() or (folder / COMPARISON_FILE).is_file():
        return
    ours = {RUNS, MODELS, REPORT, PREPARED, TUNING}
    others = [each.name for each in folder.iterdir() if not each.name.startswith(".")]
    if not set(others) <= ours:
        raise DataError(f"{folder} exists and is not a comparison. Name another --out.")


def open_comparison(folder: Path, prepared: Prepared) -> Comparison:
    """Make the folder of a comparison, or open the one that is there."""
    refuse_other_folder(folder)
    made = _describe(prepared)
    if not (folder / COMPARISON_FILE).is_file():
        made.save(folder)
        return made
    comparison = Comparison.load(folder)
    if not _is_same_data(comparison, made):
        raise DataError(
            f"{folder} compares systems on other data ({comparison.data}), or on the same "
            "prepared otherwise. Name another --out."
        )
    return comparison


def with_command(folder: Path, comparison: Comparison, command: str) -> Comparison:
    """Note a command that made the comparison, once."""
    if command not in comparison.commands:
        comparison = replace(comparison, commands=(*comparison.commands, command))
        comparison.save(folder)
    return comparison


def _is_same_data(one: Comparison, other: Comparison) -> bool:
    """Compare the documents too: the hash is that of the settings and sizes."""
    names = ("data_hash", "labels", "label_counts", "ids", "truth")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _describe(prepared: Prepared) -> Comparison:
    """Gather what all runs share from the prepared data."""
    n_documents: dict[str, int] = prepared.description["n_documents"]
    if not n_documents.get("test"):
        raise DataError(
            f"{prepared.name} has no test part, and systems are compared on one. Name a folder "
            "with train and test files, or cut one with: setrnn data split"
        )
    test = prepared.split("test")
    return Comparison(
        data=prepared.name,
        data_hash=settings_hash(prepared.description),
        synthetic=bool(prepared.description["source"].get("synthetic")),
        n_documents=dict(n_documents),
        valid_is_cut=prepared.valid_is_cut,
        labels=(*prepared.labels.names, *prepared.unseen_labels),
        label_counts=(*map(int, prepared.labels.counts), *[0] * len(prepared.unseen_labels)),
        ids=tuple(test.ids(0, len(test))),
        truth=[row.tolist() for row in test.labels],
    )


@dataclass(frozen=True)
class Plan:
    """The runs that are asked for: those that are done, and those still to do."""

    done: Sequence[Record]
    tasks: Sequence[Task]  # the longest first


def make_plan(folder: Path, comparison: Comparison, tasks: Sequence[Task]) -> Plan:
    """Pass over the runs that are done; refuse those made with other settings.

    A run that failed is tried again.
    """
    records = {record.name: record for record in load_records(folder, comparison)}
    done: list[Record] = []
    left: list[Task] = []
    for task in tasks:
        record = records.get(task.name)
        if record is None or record.failure is not None:
            left.append(task)
        else:
            _refuse_difference(folder, record, _flat(record.config), _flat(to_dict(task.config)))
            done.append(record)
    return Plan(done, longest_first(left, measured_seconds(records.values())))


def longest_first(tasks: Sequence[Task], measured: Mapping[str, Sequence[float]]) -> list[Task]:
    """Order tasks so that those that run at once end at about the same time."""
    expected = expected_seconds([task.method for task in tasks], measured)
    return sorted(tasks, key=lambda task: -expected[task.method])


def measured_seconds(records: Iterable[Record]) -> dict[str, list[float]]:
    """Return what runs took, by method."""
    seconds: dict[str, list[float]] = {}
    for record in records:
        if record.costs is not None and record.failure is None:
            seconds.setdefault(record.method, []).append(record.costs.total_seconds)
    return seconds


def failed_record(task: Task, comparison: Comparison, failure: Failure) -> Record:
    """Make the record of a run that has no scores."""
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
    folder: Path, comparison: Comparison, treatment: Mapping[str, Any], config: Config
) -> None:
    """Refuse to add runs to others that had other settings, more trials or more time."""
    for record in load_records(folder, comparison):
        if record.failure is None and not record.is_added:
            is_searched = bool(record.treatment.get("n_trials") or treatment.get("n_trials"))
            before = _treatment(record.treatment, record.config, is_searched)
            now = _treatment(treatment, to_dict(config), is_searched)
            _refuse_difference(folder, record, before, now)


def _treatment(
    treatment: Mapping[str, Any], config: Mapping[str, Any], is_searched: bool
) -> dict[str, Any]:
    """Return what must be alike for all runs: not the seed, nor settings that are searched."""
    searched = {key for space in SPACES.values() for key in space} if is_searched else set()
    own = {"seed", *searched}
    settings = {name: value for name, value in _flat(config).items() if name not in own}
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
        "Name another --out, or give the settings it was made with."
    )


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
