"""Where a run stands and its best weights: kept in memory, and now and then in its folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Optimizer

from setrnn.config import TrainingSettings
from setrnn.errors import ModelError, StoppedError
from setrnn.model.network import Network
from setrnn.training.averaging import AveragedNetwork
from setrnn.training.checkpoints import Checkpoint, Position
from setrnn.training.failures import not_finite
from setrnn.training.run_folder import RunFolder
from setrnn.training.state import (
    restore_training_state,
    training_state,
    weights_of,
    weights_state,
)

if TYPE_CHECKING:
    from lightning.fabric import Fabric

SAVING_SHARE = 0.05  # of the time, at most, goes into saving at the ends of epochs


class Keeper:
    """Saves a run and brings it back; without a folder, it only remembers the best epoch."""

    def __init__(
        self,
        network: Network,
        optimizer: Optimizer,
        fabric: Fabric,
        settings: TrainingSettings,
        run: RunFolder | None,
    ) -> None:
        """Keep a run in its folder, if it has one."""
        self.network, self.optimizer, self.fabric = network, optimizer, fabric
        self.settings, self.run = settings, run
        self.average = AveragedNetwork(network, settings.average)
        self.position = Position()
        self.best_weights: dict[str, Tensor] | None = None
        self.asked_to_stop: Callable[[], bool] = lambda: False
        self._seconds_to_save = 0.0
        self._saved_at = self._started_at = time.perf_counter()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint, and to the best epoch before it."""
        assert self.run is not None
        position = checkpoint.position
        try:
            restore_training_state(checkpoint.tensors, self.network, self.optimizer, self.fabric)
            self.average.restore(checkpoint.tensors)
            if position.best_epoch:
                self.best_weights = weights_of(self.run.best(position.best_epoch))
        except (KeyError, RuntimeError) as error:
            raise ModelError(
                f"The checkpoint in {self.run.folder} does not fit the network. Remove the folder "
                "and train anew."
            ) from error
        self.position = position
        self._started_at = time.perf_counter() - position.seconds

    def seconds(self) -> float:
        """Return how long the run has taken, before it was stopped too."""
        return time.perf_counter() - self._started_at

    def is_due(self) -> bool:
        """Tell whether the last checkpoint is too long ago."""
        return time.perf_counter() - self._saved_at >= 60 * self.settings.checkpoint_minutes

    def is_cheap(self) -> bool:
        """Tell whether saving now would take a small share of the time since it was done."""
        since = time.perf_counter() - self._saved_at
        return since * SAVING_SHARE >= self._seconds_to_save

    def save(self) -> None:
        """Keep where the run stands; never with weights that are no numbers."""
        self.check_weights()
        start = time.perf_counter()
        self.position.seconds = self.seconds()
        if self.run is not None:
            state = training_state(self.network, self.optimizer, self.fabric)
            state |= self.average.state()
            best = None if self.best_weights is None else weights_state(self.best_weights)
            self.run.save(state, self.position, best)
        self._saved_at = time.perf_counter()
        self._seconds_to_save = self._saved_at - start

    def stop_if_asked(self) -> None:
        """After Ctrl-C, save and stop."""
        if self.asked_to_stop():
            assert self.run is not None
            self.save()
            raise StoppedError(
                f"Stopped in epoch {self.position.epoch + 1} after "
                f"{self.position.n_documents:,} documents; all is saved in {self.run.folder}. "
                "Go on with --resume."
            )

    def check_weights(self) -> None:
        """Refuse weights that are no numbers; waits for the device once."""
        if not torch.stack([each.isfinite().all() for each in self.network.parameters()]).all():
            raise not_finite(self.position, self.settings)

    def keep_best(self, value: float) -> None:
        """Remember the epoch in hand as the best."""
        self.position.best_epoch, self.position.best_value = self.position.epoch + 1, value
        weights = self.average.network.state_dict()
        self.best_weights = {name: each.detach().clone() for name, each in weights.items()}

    def take_best(self) -> None:
        """Give the network the weights of the best epoch; without a valid part, it has the last."""
        best = self.best_weights
        self.network.load_state_dict(self.average.network.state_dict() if best is None else best)
