"""The schedule of a network's objectives."""

from __future__ import annotations

from setrnn.config import TrainingSettings
from setrnn.errors import ConfigError
from setrnn.methods import Method


def count_first_epochs(method: Method, settings: TrainingSettings) -> int:
    """Return how many epochs train the first objective, before the method's own.

    Each objective gets at least one epoch, unless the share is 0.
    """
    share, n_epochs = settings.random_share, settings.epochs
    if method.first_objective is None or share == 0:
        return 0
    if share == 1 or n_epochs < 2:
        raise ConfigError(
            f"'{method.name}' trains {method.first_objective} first and {method.objective} then, "
            f"each for at least one epoch, but training.random_share={share:g} of "
            f"training.epochs={n_epochs} leaves none for one of them. Raise the epochs, or "
            "lower the share."
        )
    return min(max(round(n_epochs * share), 1), n_epochs - 1)


def objective_at(method: Method, epoch: int, settings: TrainingSettings) -> str:
    """Return the objective of an epoch, counted from 0."""
    is_first = epoch < count_first_epochs(method, settings)
    objective = method.first_objective if is_first else method.objective
    assert objective is not None, "only networks are trained in epochs"
    return objective
