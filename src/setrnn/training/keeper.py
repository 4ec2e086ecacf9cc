"""The state of a run: kept in memory, saved to its folder when due or on Ctrl-C, and restored."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import torch
from torch import Tensor
from torch.optim import Optimizer

from setrnn.config import TrainingSettings
from setrnn.data.disk import select_prefix
from setrnn.errors import ModelError, StoppedError, TrainingError
from setrnn.model.network import Network
from setrnn.training.optimizer import AveragedNetwork
from setrnn.training.run_folder import Checkpoint, Position, RunFolder

SAVING_SHARE = 0.05  # of the time, at most, goes into saving at the ends of epochs
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
MODEL, BEST, _OPTIMIZER = "model.", "best.", "optimizer."
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Keeper:
    """Saves and restores a run; without a folder, it only keeps the best weights in memory."""

    def __init__(
        self,
        network: Network,
        optimizer: Optimizer,
        settings: TrainingSettings,
        run: RunFolder | None,
    ) -> None:
        self.network, self.optimizer = network, optimizer
        self.settings, self.run = settings, run
        self.average = AveragedNetwork(network, settings.average)
        self.position = Position()
        self.best_weights: dict[str, Tensor] | None = None
        # Whether Ctrl-C or SIGTERM came to any process of the training: all ask it together.
        self.is_asked_to_stop: Callable[[], bool] = lambda: False
        self._seconds_to_save = 0.0
        self._saved_at = self._started_at = time.perf_counter()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore a checkpoint."""
        assert self.run is not None
        try:
            self._restore(checkpoint.tensors)
        except (KeyError, RuntimeError) as error:
            raise ModelError(
                f"The checkpoint in {self.run.folder} does not fit the network. Remove the folder "
                "and train again."
            ) from error
        self.position = checkpoint.position
        self._started_at = time.perf_counter() - self.position.seconds

    def _restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `_state` returned; the precision and the device may have changed since."""
        self.network.load_state_dict(select_prefix(MODEL, tensors))
        for name, parameter in self.network.named_parameters():
            for key in MOMENTS:
                value = tensors.get(f"{_OPTIMIZER}{key}.{name}")
                if value is not None:
                    self.optimizer.state[parameter][key] = value.clone().to(parameter.device)
        torch.set_rng_state(tensors["random.cpu"])
        device = next(self.network.parameters()).device
        if device.type != "cpu" and f"random.{device.type}" in tensors:
            torch.get_device_module(device).set_rng_state(tensors[f"random.{device.type}"])
        self.average.restore(tensors)
        self.best_weights = select_prefix(BEST, tensors) or None

    def _state(self) -> dict[str, Tensor]:
        """Return all that decides how training continues, as tensors by name.

        These are the weights, the optimizer's moments, the random state, and the best weights.
        """
        tensors = _add_prefix(MODEL, self.network.state_dict())
        for name, parameter in self.network.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"{_OPTIMIZER}{key}.{name}"] = value
        tensors["random.cpu"] = torch.get_rng_state()
        device = next(self.network.parameters()).device
        if device.type != "cpu":
            state = torch.get_device_module(device).get_rng_state()
            tensors[f"random.{device.type}"] = state
        return tensors | self.average.state() | _add_prefix(BEST, self.best_weights or {})

    def seconds(self) -> float:
        """Return the seconds that the run has taken, including those before a resume."""
        return time.perf_counter() - self._started_at

    def is_due(self) -> bool:
        """Return whether `training.checkpoint_minutes` have passed since the last save."""
        return time.perf_counter() - self._saved_at >= 60 * self.settings.checkpoint_minutes

    def is_cheap(self) -> bool:
        """Return whether saving now would take a small share of the time since the last save."""
        since = time.perf_counter() - self._saved_at
        return since * SAVING_SHARE >= self._seconds_to_save

    def save(self) -> None:
        """Save the state of the run; refuse weights that are not finite."""
        self.check_weights()
        start = time.perf_counter()
        self.position.seconds = self.seconds()
        if self.run is not None:
            self.run.save(self._state(), self.position)
        self._saved_at = time.perf_counter()
        self._seconds_to_save = self._saved_at - start

    def stop(self) -> NoReturn:
        """Save, and raise StoppedError with the ways to continue."""
        assert self.run is not None, "without a folder, Ctrl-C raises KeyboardInterrupt"
        self.save()
        best, way_out = self.position.best_epoch, "Resume with --resume"
        if best:  # no further epoch fits the time that is already used
            minutes = max(self.position.seconds / 60, 0.01)
            way_out += (
                f", or keep epoch {best}, the best so far, with --resume --budget {minutes:.2f}"
            )
        raise StoppedError(
            f"Stopped in epoch {self.position.epoch + 1} after {self.position.n_documents:,} "
            f"documents. The run is saved in {self.run.folder}. {way_out}."
        )

    def check_weights(self) -> None:
        """Refuse weights that are not finite; this waits for the device once."""
        if not torch.stack([each.isfinite().all() for each in self.network.parameters()]).all():
            raise self.not_finite()

    def not_finite(self) -> TrainingError:
        """Return the error for a loss or a weight that is not a finite number."""
        settings, position = self.settings, self.position
        return TrainingError(
            f"The loss is not finite in epoch {position.epoch + 1}, batch {position.batch} or "
            f"shortly before. Lower training.learning_rate (now {settings.learning_rate:g}) or "
            f"training.clip_norm (now {settings.clip_norm:g}; 0 is no limit), or set "
            "training.precision=float32. Earlier checkpoints are kept."
        )

    def keep_best(self, value: float) -> None:
        """Keep the weights of the current epoch as the best."""
        self.position.best_epoch, self.position.best_value = self.position.epoch + 1, value
        weights = self.average.network.state_dict()
        self.best_weights = {name: each.detach().clone() for name, each in weights.items()}

    def load_best(self) -> None:
        """Give the network the best weights; without a valid part, those of the last epoch."""
        best = self.best_weights
        self.network.load_state_dict(self.average.network.state_dict() if best is None else best)


def _add_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": each for name, each in tensors.items()}


@contextmanager
def polite_interrupts() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C or SIGTERM came; a second one stops at once.

    An ignored signal stays ignored. Only the main thread gets signals: elsewhere nothing changes.
    """
    is_asked = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal is_asked
        if is_asked:
            raise KeyboardInterrupt
        is_asked = True

    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: each for number, each in before.items() if each not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, ask)
    try:
        yield lambda: is_asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
