"""The search for settings of `--tune N`, with Optuna: the same number of trials for every system.

    DIR/tuning/METHOD.journal    the trials so far: a stopped search continues after them

Trials are judged on the valid part, by training.metric and the system's own rule. The first trial
has the settings as given, so that the result is never worse than they are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import isclose
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setrnn.comparison.run import Task
from setrnn.config import Config
from setrnn.data.prepared import Prepared
from setrnn.errors import ConfigError, MissingExtraError, StoppedError
from setrnn.methods import Method, find_method
from setrnn.metrics import LOWER_IS_BETTER
from setrnn.plain_settings import from_dict, settings_hash, to_dict
from setrnn.progress import Note, OnProgress, Progress, ignore_progress
from setrnn.training.start import TrainOptions, train_system

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

TUNING = "tuning"  # in the folder of a comparison
N_RANDOM = 5  # trials before the sampler learns from them
GIVEN = "is_given"  # marks the trial with the settings as given
Measure = Callable[[Config, Callable[[float], None]], float]  # calls back with its share done


@dataclass(frozen=True)
class Between:
    """A number from low to high, on a logarithmic scale or in steps."""

    low: float
    high: float
    is_log: bool = False
    step: float | None = None

    def contains(self, setting: float) -> bool:
        """Return whether a search can draw this setting."""
        n_steps = 0.0 if self.step is None else (setting - self.low) / self.step
        return self.low <= setting <= self.high and isclose(n_steps, round(n_steps), abs_tol=1e-9)

    def suggest(self, trial: Trial, key: str) -> float:
        """Draw a setting, with three digits: more would only look exact."""
        drawn = trial.suggest_float(key, self.low, self.high, log=self.is_log, step=self.step)
        return float(f"{drawn:.3g}")


@dataclass(frozen=True)
class OneOf:
    """One of a few numbers."""

    values: tuple[int, ...]

    def contains(self, setting: float) -> bool:
        """Return whether a search can draw this setting."""
        return setting in self.values

    def suggest(self, trial: Trial, key: str) -> int:
        """Draw a setting."""
        drawn: int = trial.suggest_categorical(key, self.values)
        return drawn


Space = Mapping[str, Between | OneOf]

# The searched settings: the few that matter most, around values that are good on most data.
SPACES: dict[str, Space] = {
    "network": {
        "training.learning_rate": Between(2e-4, 4e-3, is_log=True),
        "training.batch_size": OneOf((16, 32, 64, 128, 256)),
        "model.dropout": Between(0.0, 0.6, step=0.05),
        "model.word_dropout": Between(0.0, 0.4, step=0.05),
    },
    "transformer": {
        "encoder.learning_rate": Between(1e-5, 2e-4, is_log=True),
        "training.learning_rate": Between(1e-4, 4e-3, is_log=True),
        "training.batch_size": OneOf((16, 32, 64)),
        "model.dropout": Between(0.0, 0.6, step=0.05),
    },
    "classical": {
        "classical.l1": Between(0.01, 1.0, is_log=True),
        "classical.l2": Between(0.01, 1.0, is_log=True),
    },
}


@dataclass(frozen=True)
class Tuned:
    """The best settings found, and all trials: number, settings, value, seconds, error."""

    config: Config
    trials: list[dict[str, Any]]


def find_space(method: Method, config: Config) -> Space:
    """Return the settings that are searched for a system."""
    if not method.is_network:
        return SPACES["classical"]
    return SPACES["transformer" if config.encoder.is_pretrained else "network"]


def tune_method(task: Task, n_trials: int, on_progress: OnProgress = ignore_progress) -> Tuned:
    """Search the settings of the system of a run; each trial has the time budget of the run.

    Trials of an earlier search that was stopped count. A trial that fails is recorded with its
    error. If all trials fail, the settings stay as given.
    """
    prepared = Prepared(task.prepared)
    if not prepared.description["n_documents"].get("valid"):
        raise ConfigError(f"--tune chooses on a valid part, and {prepared.folder} has none.")
    settings = to_dict(task.config)
    identity = settings_hash(prepared.description, task.method, settings, task.budget_seconds)
    space = find_space(find_method(task.method), task.config)
    journal = task.folder / TUNING / f"{task.method}.journal"
    measure = partial(_measure_on_valid, task, prepared)
    return search(measure, task.config, space, n_trials, journal, identity, on_progress)


def search(
    measure: Measure,
    config: Config,
    space: Space,
    n_trials: int,
    journal: Path,
    identity: str,
    on_progress: OnProgress = ignore_progress,
) -> Tuned:
    """Measure settings of the space one after the other, and return the best.

    The same seed gives the same trials, also if the search is stopped and continued. `identity`
    names the search: other trials in the journal do not count.
    """
    if n_trials < 1:
        raise ConfigError(f"--tune must be at least 1 trial, got {n_trials}.")

    def try_settings(trial: Trial) -> float:
        number = len(_list_ended(study))

        def report(share: float) -> None:
            detail = f"trial {number + 1} of {n_trials}"
            on_progress(Progress("trials", number + share, n_trials, "trials", detail))

        report(0.0)
        settings = _choose_settings(trial, config, space)
        trial.set_user_attr("settings", settings)
        start = time.perf_counter()
        try:
            return measure(_with_settings(config, settings), report)
        except StoppedError:
            raise
        except Exception as error:
            trial.set_user_attr("error", f"{type(error).__name__}: {' '.join(str(error).split())}")
            raise _TrialError from error
        finally:
            trial.set_user_attr("seconds", round(time.perf_counter() - start, 2))

    is_lowest_best = config.training.metric in LOWER_IS_BETTER
    with _open_study(journal, identity, is_lowest_best) as study:
        while (number := len(_list_ended(study))) < n_trials:
            if number == 0 and not any(each.state.name == "WAITING" for each in study.trials):
                study.enqueue_trial(_given_settings(config, space), user_attrs={GIVEN: True})
            study.sampler = _make_sampler(config.seed, number)
            study.optimize(try_settings, n_trials=1, catch=_TrialError)
        trials = _list_ended(study)[:n_trials]
    described = [
        {"number": number, "settings": trial.user_attrs["settings"], "value": trial.value}
        | {name: trial.user_attrs.get(name) for name in ("seconds", "error")}
        for number, trial in enumerate(trials)
    ]
    measured = [each for each in described if each["value"] is not None]
    if measured:
        pick = min if is_lowest_best else max
        config = _with_settings(config, pick(measured, key=itemgetter("value"))["settings"])
    return Tuned(config, described)


class _TrialError(Exception):
    """A trial that failed: the others continue."""


def _choose_settings(trial: Trial, config: Config, space: Space) -> dict[str, Any]:
    """Draw settings; of the given ones, the sampler sees only those within the space."""
    if GIVEN not in trial.user_attrs:
        return {key: each.suggest(trial, key) for key, each in space.items()}
    given = _given_settings(config, space)
    for key, setting in given.items():
        if space[key].contains(setting):
            space[key].suggest(trial, key)
    return given


def _measure_on_valid(
    task: Task, prepared: Prepared, config: Config, on_share: Callable[[float], None]
) -> float:
    """Train with other settings, and return training.metric on the valid part."""

    def report(event: Progress | Note) -> None:
        if isinstance(event, Progress) and event.activity == "training":
            on_share(event.share)

    method = find_method(task.method)
    options = TrainOptions(device=task.device, max_seconds=task.budget_seconds, on_progress=report)
    trained = train_system(method, prepared, config, options)
    metric = config.training.metric
    if method.is_network:
        best = trained.notes["best_epoch"]
        return float(trained.notes["epochs"][best - 1][metric])
    from setrnn.training.validation import validate

    most = config.training.valid_documents
    return validate(trained.system, prepared, method.rule, most)[metric]


@contextmanager
def _open_study(journal: Path, identity: str, is_lowest_best: bool) -> Iterator[Study]:
    """Open the study in the journal; a trial that a killed process left running has failed."""
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
        from optuna.trial import TrialState
    except ImportError as error:
        raise MissingExtraError("optuna", "tune", "--tune") from error
    journal.parent.mkdir(parents=True, exist_ok=True)
    _drop_incomplete_line(journal)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        lock = JournalFileOpenLock(str(journal))
        study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(journal), lock)),
            study_name=identity,
            direction="minimize" if is_lowest_best else "maximize",
            load_if_exists=True,
        )
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            study.tell(trial.number, state=TrialState.FAIL)
        yield study
    finally:
        optuna.logging.set_verbosity(before)


def _drop_incomplete_line(journal: Path) -> None:
    """Remove a last line that a killed process did not finish: Optuna would append to it."""
    if not journal.exists():
        return
    content = journal.read_bytes()
    n_complete = content.rfind(b"\n") + 1
    if n_complete < len(content):
        os.truncate(journal, n_complete)  # in place: a kill here loses no line


def _list_ended(study: Study) -> list[FrozenTrial]:
    """List the trials that have a value or an error, in order; not those that were stopped."""
    trials = study.get_trials(deepcopy=False)
    return [each for each in trials if each.value is not None or each.user_attrs.get("error")]


def _make_sampler(seed: int, number: int) -> Any:  # noqa: ANN401 (a sampler of Optuna's)
    """Return a sampler per trial, so that a search continues as if it had not been stopped."""
    from optuna.samplers import TPESampler

    trial_seed = int(settings_hash(seed, number), 16) % 2**32
    return TPESampler(seed=trial_seed, n_startup_trials=N_RANDOM)


def _given_settings(config: Config, space: Space) -> dict[str, Any]:
    values = to_dict(config)
    return {key: values[key.split(".")[0]][key.split(".")[1]] for key in space}


def _with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    values = to_dict(config)
    for key, setting in settings.items():
        group, name = key.split(".")
        values[group][name] = setting
    return from_dict(Config, values)
