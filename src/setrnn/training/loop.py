"""Algorithm 2: for each batch, find the orders that count, and take a step that raises them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from setrnn.config import Config, TrainingSettings
from setrnn.data.batches import Batch, make_batch, training_batches
from setrnn.data.prepared import Prepared, PreparedSplit
from setrnn.errors import DataError, TrainingError
from setrnn.model.network import Network
from setrnn.objectives import find_objective
from setrnn.recurrent import RecurrentSystem
from setrnn.training.checkpoints import Position, model_weights, restore, training_tensors
from setrnn.training.interrupts import polite_interrupts
from setrnn.training.prefetch import prefetched
from setrnn.training.recipe import Recipe
from setrnn.training.run_folder import RunFolder
from setrnn.training.schedule import learning_rate
from setrnn.training.validation import is_better, validate

if TYPE_CHECKING:
    from lightning.fabric import Fabric

BATCHES_BETWEEN_REPORTS = 20  # reading the loss makes the GPU wait
PRECISIONS = {"float32": "32-true", "bfloat16": "bf16-mixed", "float16": "16-mixed"}


@dataclass(frozen=True)
class Progress:
    """Where training is, for those who watch."""

    epoch: int  # from 1
    n_epochs: int
    batch: int
    n_batches: int
    n_documents: int  # since the last report
    loss: float  # the mean of the epoch so far
    objective: str
    scores: dict[str, float] | None = None  # on valid, at the end of an epoch


OnProgress = Callable[[Progress], None]


class StoppedError(TrainingError):
    """Training was asked to stop, and did, after saving where it stands."""


class Trainer:
    """One training run of one recurrent system."""

    def __init__(
        self,
        network: Network,
        prepared: Prepared,
        config: Config,
        recipe: Recipe,
        fabric: Fabric,
        run: RunFolder | None = None,
        on_progress: OnProgress = lambda progress: None,
    ) -> None:
        self.network, self.prepared, self.config, self.recipe = network, prepared, config, recipe
        self.fabric, self.run, self.on_progress = fabric, run, on_progress
        self.settings: TrainingSettings = config.training
        self.train: PreparedSplit = prepared.split("train")
        self.position = Position()
        self.best_weights: dict[str, Tensor] | None = None
        self._asked_to_stop: Callable[[], bool] = lambda: False
        self._saved_at = self._started_at = time.perf_counter()

    def fit(self, resume: bool = False) -> None:
        """Train to the end; the network then has the weights of the best epoch."""
        _check_set_sizes(self.train, self.config.model.max_labels)
        optimizer = torch.optim.AdamW(
            [each for each in self.network.parameters() if each.requires_grad],
            lr=self.settings.learning_rate,
            weight_decay=self.settings.weight_decay,
            fused=True,
        )
        self.optimizer = cast("Optimizer", self.fabric.setup_optimizers(optimizer))
        torch.manual_seed(self.config.seed)
        if self.run is not None:
            found = self.run.begin(resume)
            if found is not None:
                tensors, self.position = found
                restore(tensors, self.network, optimizer, self.fabric.device)
        self._started_at = time.perf_counter() - self.position.seconds
        with polite_interrupts() as self._asked_to_stop, _clear_memory_errors(self.settings):
            while not self.position.is_finished:
                self._train_epoch()
        self._take_best()
        if self.run is not None:
            self.run.close()

    def _train_epoch(self) -> None:
        """Go through the training documents once, from where the run stands, then measure."""
        position, settings = self.position, self.settings
        name = self.recipe.objective_at(position.epoch, settings.epochs, settings.random_share)
        objective = find_objective(name)
        batches = self._batches()
        start, n_started_at = time.perf_counter(), position.n_documents
        self.network.train()
        loss_sum = torch.zeros((), device=self.fabric.device)
        n_unread = 0
        for batch in prefetched(self._make_batch, batches[position.batch :]):
            rate = self._set_rate(len(batches))
            on_device = batch.to(self.fabric.device)
            with self.fabric.autocast():
                encoding = self.network.encode(on_device)
                values = objective(
                    self.network.decoder, encoding, on_device.labels, self.config.search.beam_width
                )
                loss = -values.mean()
            self.fabric.backward(loss)
            if settings.clip_norm:
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), settings.clip_norm)
            self.optimizer.step()
            self.optimizer.zero_grad()
            loss_sum += loss.detach() * len(batch)
            position.batch += 1
            position.n_documents += len(batch)
            n_unread += len(batch)
            is_last = position.batch == len(batches)
            if position.batch % BATCHES_BETWEEN_REPORTS == 0 or is_last or self._asked_to_stop():
                self._read_loss(loss_sum, n_unread, len(batches), name, rate)
                n_unread = 0
                self._save_now_and_then()
        seconds = time.perf_counter() - start
        self._end_epoch(name, (position.n_documents - n_started_at) / max(seconds, 1e-9))

    def _batches(self) -> list[Any]:
        """Return the rows of each batch of this epoch: the same whenever it is begun."""
        random = np.random.default_rng((self.config.seed, self.position.epoch))
        return training_batches(
            self.train.tokens.lengths, self.train.labels.lengths, self.settings.batch_size, random
        )

    def _make_batch(self, rows: Any) -> Batch:  # noqa: ANN401 (an array of row numbers)
        return make_batch(self.train.tokens, self.train.labels, rows)

    def _set_rate(self, n_batches: int) -> float:
        done = self.position.epoch + (self.position.batch + 0.5) / n_batches
        rate = learning_rate(done / self.settings.epochs, self.settings)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

    def _read_loss(
        self, loss_sum: Tensor, n_unread: int, n_batches: int, objective: str, rate: float
    ) -> None:
        """Fetch the loss from the device, check it, and tell those who watch."""
        position = self.position
        position.loss_sum += float(loss_sum)
        loss_sum.zero_()
        if not isfinite(position.loss_sum):
            raise TrainingError(
                f"The loss is not finite in epoch {position.epoch + 1}, near batch "
                f"{position.batch}. Lower training.learning_rate (now "
                f"{self.settings.learning_rate:g}), set training.clip_norm, or train in float32."
            )
        loss = position.loss_sum / position.n_documents
        if self.run is not None:
            step = position.epoch * n_batches + position.batch
            self.run.log({"train/loss": loss, "train/learning_rate": rate}, step)
        self.on_progress(
            Progress(
                position.epoch + 1,
                self.settings.epochs,
                position.batch,
                n_batches,
                n_unread,
                loss,
                objective,
            )
        )

    def _save_now_and_then(self) -> None:
        """Save where the run stands if it is time to, or if it was asked to stop."""
        if self._asked_to_stop():
            self._save()
            raise StoppedError(self._stopped_message())
        if time.perf_counter() - self._saved_at > 60 * self.settings.checkpoint_minutes:
            self._save()

    def _end_epoch(self, objective: str, documents_per_second: float) -> None:
        """Measure on valid, keep the best, and begin the next epoch."""
        position, settings = self.position, self.settings
        scores = self._validate()
        row: dict[str, Any] = {
            "epoch": position.epoch + 1,
            "objective": objective,
            "loss": position.loss_sum / max(position.n_documents, 1),
            "documents_per_second": round(documents_per_second, 1),
            **scores,
        }
        position.history.append(row)
        value = scores.get(settings.metric)
        # Without a valid part, the last epoch counts as the best.
        if value is None or is_better(settings.metric, value, position):
            position.best_epoch, position.best_value = position.epoch + 1, value or 0.0
            if value is not None:
                self._keep_best()
        position.epoch, position.batch = position.epoch + 1, 0
        position.loss_sum, position.n_documents = 0.0, 0
        waited = position.epoch - position.best_epoch
        is_tired = bool(settings.patience) and waited >= settings.patience
        position.is_finished = position.epoch == settings.epochs or is_tired
        if self.run is not None:
            self.run.write_epochs(position.history)
            self.run.log({f"valid/{name}": each for name, each in scores.items()}, position.epoch)
        self._save()
        self.on_progress(
            Progress(position.epoch, settings.epochs, 0, 0, 0, row["loss"], objective, scores)
        )
        if self._asked_to_stop() and not position.is_finished:
            raise StoppedError(self._stopped_message())

    def _validate(self) -> dict[str, float]:
        if "valid" not in self.prepared.splits or not len(self.prepared.split("valid")):
            return {}
        system = RecurrentSystem(self.network, self.config, self.fabric.device)
        return validate(system, self.prepared, self.recipe.rule, self.settings.valid_documents)

    def _keep_best(self) -> None:
        weights = self.network.state_dict()
        if self.run is None:
            self.best_weights = {name: each.detach().clone() for name, each in weights.items()}
        else:
            self.run.save_best(
                {f"model.{name}": each for name, each in weights.items()}, self.position
            )

    def _take_best(self) -> None:
        """Give the network the weights of the best epoch; the last has them without valid."""
        if self.best_weights is not None:
            self.network.load_state_dict(self.best_weights)
        elif self.run is not None and "valid" in self.prepared.splits:
            self.network.load_state_dict(model_weights(self.run.best()))

    def _save(self) -> None:
        self._saved_at = time.perf_counter()
        self.position.seconds = self._saved_at - self._started_at
        if self.run is not None:
            tensors = training_tensors(self.network, self.optimizer, self.fabric.device)
            self.run.save_last(tensors, self.position)

    def _stopped_message(self) -> str:
        where = f"epoch {self.position.epoch + 1}, batch {self.position.batch}"
        if self.run is None:
            return f"Stopped in {where}."
        return f"Stopped in {where}; all is saved in {self.run.folder}. Go on with --resume."


def _check_set_sizes(train: PreparedSplit, max_labels: int) -> None:
    sizes = train.labels.lengths
    longest = int(sizes.argmax())
    if sizes[longest] > max_labels:
        name = train.ids(longest, longest + 1)[0]
        raise DataError(
            f"Document '{name}' of train has {sizes[longest]} labels, more than model.max_labels "
            f"({max_labels}). Raise it: --set model.max_labels={sizes[longest]}"
        )


@contextmanager
def _clear_memory_errors(settings: TrainingSettings) -> Iterator[None]:
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise TrainingError(
            f"A batch does not fit the GPU's memory. Lower training.batch_size (now "
            f"{settings.batch_size}), or text.max_words or search.beam_width."
        ) from error
