"""Which epoch is the best, and when to wait no longer for a better one."""

from __future__ import annotations

from collections.abc import Mapping

from setrnn.config import TrainingSettings
from setrnn.training.checkpoints import Position


def is_best(scores: Mapping[str, float], position: Position, metric: str) -> bool:
    """Tell whether scores beat those of the best epoch so far; without scores, no epoch does."""
    if metric not in scores:
        return False
    if position.best_epoch == 0:
        return True
    value, best = scores[metric], position.best_value
    return value < best if metric == "hamming_loss" else value > best


def is_finished(position: Position, settings: TrainingSettings) -> bool:
    """Tell whether all epochs are done, or too many since the best one."""
    n_waited = position.epoch - position.best_epoch if position.best_epoch else 0
    return position.epoch == settings.epochs or 0 < settings.patience <= n_waited


def is_out_of_time(position: Position, seconds: float, max_seconds: float | None) -> bool:
    """Tell whether one more epoch, as long as those before, would end after the time is up."""
    if max_seconds is None or position.epoch == 0:
        return False
    return seconds * (position.epoch + 1) / position.epoch > max_seconds
