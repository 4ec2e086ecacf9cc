"""What may be different when a run is resumed: the number of its epochs, or that it ends now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from setrnn.config import Config, TrainingSettings
from setrnn.errors import ConfigError, TrainingError
from setrnn.methods import Method
from setrnn.training.loop import objective_at
from setrnn.training.optimizer import learning_rate
from setrnn.training.run_folder import FIRST, LAST, Checkpoint, Position, has_run, read_state


def keep_epochs(config: Config, folder: Path | None) -> Config:
    """Return the settings with the number of epochs of the run to resume, unless they have one."""
    if config.training.epochs or folder is None:
        return config
    runs = [each for each in (folder, folder / FIRST) if has_run(each)]
    if not runs:
        return config
    n_epochs = read_state(runs[0] / LAST).identity["config"]["training"]["epochs"]
    return replace(config, training=replace(config.training, epochs=n_epochs))


def change_epochs(
    found: Checkpoint, method: Method, settings: TrainingSettings, folder: Path
) -> str | None:
    """Return a note if a run continues with another number of epochs; raise if it cannot.

    An epoch that has begun beyond the new number is dropped.
    """
    before = TrainingSettings(**found.identity["config"]["training"])
    position, n_before, n_epochs = found.position, before.epochs, settings.epochs
    if n_epochs == n_before:
        return None
    if position.epoch > n_epochs:
        raise ConfigError(
            f"{folder} has finished {position.epoch} epochs already, more than "
            f"training.epochs={n_epochs}. Keep the best of them with --resume --finish-now, or set "
            "more epochs."
        )
    for epoch in range(position.epoch + (position.batch > 0)):
        now = objective_at(method, epoch, settings)
        if objective_at(method, epoch, before) != now:
            raise ConfigError(
                f"{folder} is a run of {n_before} epochs. With training.epochs={n_epochs}, epoch "
                f"{epoch + 1} of '{method.name}' would train {now}, and it has trained another "
                f"objective. Resume it with training.epochs={n_before}, or use another --out."
            )
    if position.epoch == n_epochs:
        position.restart_epoch()
        return f"Epoch {n_epochs} is finished: the run ends there, instead of after {n_before}."
    rate = learning_rate(position.epoch / n_epochs, settings)
    return (
        f"The run continues after epoch {position.epoch} with {n_epochs} epochs instead of "
        f"{n_before}: the learning rate is now that of a run of {n_epochs} epochs ({rate:.2g})."
    )


def check_finishable(folder: Path, method: Method) -> None:
    """Raise if a run has no epoch that can become the model."""
    if not has_run(folder) and not has_run(folder / FIRST):
        raise TrainingError(f"There is no run at {folder} to finish. Check --out.")
    objectives = list_objectives(folder)
    if method.objective in objectives:
        return
    what = "no finished epoch"
    if objectives or list_objectives(folder / FIRST):  # epochs of another system
        what = f"only finished epochs of {method.first_method}, none of {method.name}"
    raise TrainingError(f"{folder} has {what}: there is nothing to keep. Continue with --resume.")


def list_objectives(folder: Path) -> set[str]:
    """Return the objectives of the finished epochs of a run; none if there is no run."""
    position = read_state(folder / LAST).position if has_run(folder) else Position()
    return {row["objective"] for row in position.history}
