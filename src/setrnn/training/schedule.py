"""The learning rate: a rise, then a fall."""

from __future__ import annotations

from setrnn.config import TrainingSettings


def learning_rate(progress: float, settings: TrainingSettings) -> float:
    """Return the rate after a share of the whole training, from 0 to 1."""
    if progress < settings.warm_up:
        return settings.learning_rate * progress / settings.warm_up
    if settings.decay == "none" or settings.warm_up == 1:
        return settings.learning_rate
    return settings.learning_rate * (1 - progress) / (1 - settings.warm_up)
