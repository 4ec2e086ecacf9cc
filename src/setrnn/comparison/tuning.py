"""The search for settings of `--tune N`: the same number of trials for every system.

    DIR/tuning/METHOD.journal    the trials as they end: a stopped search goes on after them

Trials are chosen on the valid part, by training.metric and the system's own rule. The first is the
settings as given, so that a search never ends below where it began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setrnn.comparison.run import OnProgress
from setrnn.config import Config, from_dict, settings_hash, to_dict
from setrnn.data.prepared import Prepared
from setrnn.errors import ConfigError, MissingExtraError, StoppedError
from setrnn.methods import Method, find_method
from setrnn.metrics import LOWER_IS_BETTER
from setrnn.progress import Note, Progress
from setrnn.training.start import TrainOptions, train_system

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.storages import JournalStorage
    from optuna.trial import FrozenTrial

TUNING = "tuning"  # of the folder of a comparison
N_RANDOM = 5  # trials before the sampler learns from them
Measure = Callable[[Config, Callable[[float], None]], float]  # told what to do with its share done


@dataclass(frozen=True)
class Between:
    """A number from low to high; by its logarithm, or in steps."""

    low: float
    high: float
    is_log: bool = False
    step: float | None = None

    def holds(self, setting: float) -> bool:
        """Tell whether it can be drawn."""
        n_steps = 0.0 if self.step is None else (setting - self.low) / self.step
        return self.low <= setting <= self.high and isclose(n_steps, round(n_steps), abs_tol=1e-9)


@dataclass(frozen=True)
class OneOf:
    """One of a few numbers."""

    values: tuple[int, ...]

    def holds(self, setting: float) -> bool:
        """Tell whether it can be drawn."""
        return setting in self.values


Space = Mapping[str, Between | OneOf]

# What is searched. Few settings, the ones that decide most, around what is good on most data.
SPACES: dict[str, Space] = {
    "network": {
        "training.learning_rate": Between(2e-4, 4e-3, is_log=True),
        "training.batch_size": OneOf((32, 64, 128, 256)),
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


def space_of(method: Method, config: Config) -> Space:
    """Return what is searched for a system."""
    if not method.is_network:
        return SPACES["classical"]
    return SPACES["transformer" if config.encoder.is_pretrained else "network"]


def tuned_config(
    prepared: Prepared,
    method: str,
    config: Config,
    n_trials: int,
    folder: Path,
    device: str = "auto",
    on_progress: OnProgress = lambda activity, share: None,
    budget_seconds: float | None = None,
) -> Tuned:
    """Search the settings of a system, each trial within the budget of a run.

    Trials that a stopped search left in `folder` count.

    A trial that fails is kept with its error and passed over. If all do, the settings stay as they
    were given.
    """
    found = find_method(method)
    if not prepared.description["n_documents"].get("valid"):
        raise ConfigError(f"--tune chooses on a valid part, and {prepared.folder} has none.")
    identity = settings_hash(prepared.description, method, to_dict(config), budget_seconds)

    def measure(trial: Config, on_share: Callable[[float], None]) -> float:
        return _valid_score(prepared, found, trial, device, on_share, budget_seconds)

    return search(
        measure,
        config,
        space_of(found, config),
        n_trials,
        folder / TUNING / f"{method}.journal",
        identity,
        on_progress,
    )


def search(
    measure: Measure,
    config: Config,
    space: Space,
    n_trials: int,
    journal: Path,
    identity: str,
    on_progress: OnProgress = lambda activity, share: None,
) -> Tuned:
    """Try settings of the space one after the other, and return the best.

    The same seed gives the same trials, stopped and gone on with or not. `identity` names what is
    searched: trials of other searches in the journal do not count.
    """
    if n_trials < 1:
        raise ConfigError(f"--tune must be at least 1 trial, got {n_trials}.")
    is_lowest_best = config.training.metric in LOWER_IS_BETTER
    with _opened_study(journal, identity, is_lowest_best) as study:
        while (number := len(_finished(study))) < n_trials:

            def on_share(share: float, number: int = number) -> None:
                on_progress(f"trial {number + 1} of {n_trials}", (number + share) / n_trials)

            on_share(0.0)
            _try(study, measure, config, space, number, on_share)
        trials = _finished(study)[:n_trials]
    best = config
    with_value = [trial for trial in trials if trial.value is not None]
    if with_value:
        pick = min if is_lowest_best else max
        best = _with_settings(config, pick(with_value, key=_value).user_attrs["settings"])
    return Tuned(best, [_as_dict(number, trial) for number, trial in enumerate(trials)])


def _try(
    study: Study,
    measure: Measure,
    config: Config,
    space: Space,
    number: int,
    on_share: Callable[[float], None],
) -> None:
    """Run one trial and keep what came of it."""
    from optuna.trial import TrialState, create_trial

    distributions = {key: _distribution(each) for key, each in space.items()}
    asked = None
    if number == 0:
        settings = _given(config, space)
    else:
        study.sampler = _sampler(config.seed, number)
        asked = study.ask(distributions)
        settings = {key: _rounded(asked.params[key]) for key in space}
    start, value, error = time.perf_counter(), None, None
    try:
        value = measure(_with_settings(config, settings), on_share)
    except StoppedError:
        raise
    except Exception as problem:  # noqa: BLE001 (whatever stops a trial, the others go on)
        error = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
    state = TrialState.FAIL if value is None else TrialState.COMPLETE
    seconds = round(time.perf_counter() - start, 2)
    attributes = {"settings": settings, "seconds": seconds, "error": error}
    if asked is None:
        # The sampler learns from it what lies within the space.
        inside = {key: each for key, each in settings.items() if space[key].holds(each)}
        study.add_trial(
            create_trial(
                state=state,
                value=value,
                params=inside,
                distributions={key: distributions[key] for key in inside},
                user_attrs=attributes,
            )
        )
        return
    for key, attribute in attributes.items():
        asked.set_user_attr(key, attribute)
    study.tell(asked, value, state)


def _valid_score(
    prepared: Prepared,
    method: Method,
    config: Config,
    device: str,
    on_share: Callable[[float], None],
    budget_seconds: float | None = None,
) -> float:
    """Train, and return the measure on valid that training.metric names."""

    def report(event: Progress | Note) -> None:
        if isinstance(event, Progress) and event.activity == "training":
            on_share(event.share)

    options = TrainOptions(device=device, max_seconds=budget_seconds, on_progress=report)
    trained = train_system(method, prepared, config, options)
    metric = config.training.metric
    if method.is_network:
        best = trained.notes["best_epoch"]
        return float(trained.notes["epochs"][best - 1][metric])
    from setrnn.training.validation import validate

    most = config.training.valid_documents
    return validate(trained.system, prepared, method.rule, most)[metric]


@contextmanager
def _opened_study(journal: Path, identity: str, is_lowest_best: bool) -> Iterator[Study]:
    """Open the journal, and settle trials that were cut short."""
    optuna = _import_optuna()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(
            storage=_storage(journal),
            study_name=identity,
            direction="minimize" if is_lowest_best else "maximize",
            load_if_exists=True,
        )
        running = optuna.trial.TrialState.RUNNING
        for trial in study.get_trials(deepcopy=False, states=(running,)):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        yield study
    finally:
        optuna.logging.set_verbosity(before)


def _storage(journal: Path) -> JournalStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    journal.parent.mkdir(parents=True, exist_ok=True)
    _drop_half_line(journal)
    return JournalStorage(JournalFileBackend(str(journal), JournalFileOpenLock(str(journal))))


def _drop_half_line(journal: Path) -> None:
    """Cut off what a killed process wrote only half of: nothing could be read after it."""
    if not journal.exists():
        return
    content = journal.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        journal.write_bytes(whole)


def _finished(study: Study) -> list[FrozenTrial]:
    """Return the trials that ran to their end, good or bad, in order."""
    trials = study.get_trials(deepcopy=False)
    return [each for each in trials if each.value is not None or each.user_attrs.get("error")]


def _sampler(seed: int, number: int) -> Any:  # noqa: ANN401 (a sampler of Optuna's)
    """Return a sampler of its own for each trial: those before it may be of another process."""
    from optuna.samplers import TPESampler

    of_trial = int(settings_hash(seed, number), 16) % 2**32
    return TPESampler(seed=of_trial, n_startup_trials=N_RANDOM, multivariate=False)


def _distribution(each: Between | OneOf) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if isinstance(each, OneOf):
        return CategoricalDistribution(each.values)
    return FloatDistribution(each.low, each.high, log=each.is_log, step=each.step)


def _given(config: Config, space: Space) -> dict[str, Any]:
    """Return the settings of the space as the config has them."""
    values = to_dict(config)
    return {key: values[key.split(".")[0]][key.split(".")[1]] for key in space}


def _with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    values = to_dict(config)
    for key, setting in settings.items():
        group, name = key.split(".")
        values[group][name] = setting
    return from_dict(Config, values)


def _rounded(setting: float) -> float:
    """Keep three digits: more would only look exact."""
    return setting if isinstance(setting, int) else float(f"{setting:.3g}")


def _value(trial: FrozenTrial) -> float:
    assert trial.value is not None
    return trial.value


def _as_dict(number: int, trial: FrozenTrial) -> dict[str, Any]:
    kept = trial.user_attrs
    return {
        "number": number,
        "settings": kept["settings"],
        "value": trial.value,
        "seconds": kept["seconds"],
        "error": kept["error"],
    }


def _import_optuna() -> Any:  # noqa: ANN401 (a module)
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("optuna", "tune", "--tune") from error
    return optuna
