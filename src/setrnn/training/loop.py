"""Algorithm 2: for each batch, find the orders that count, and take a step that raises them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from setrnn.config import Config, TrainingSettings
from setrnn.data.batches import Batch, TrainingDocuments, training_batches
from setrnn.data.labels import Incomplete
from setrnn.data.prepared import Prepared
from setrnn.data.streaming import prefetch
from setrnn.errors import explain_full_gpu
from setrnn.methods import Method
from setrnn.metrics import is_better
from setrnn.model.devices import sum_type
from setrnn.model.network import Network
from setrnn.objectives import find_objective
from setrnn.progress import Epoch, Progress
from setrnn.systems.products import fit_empty_set
from setrnn.systems.registry import find_system
from setrnn.training.gradients import Gradients
from setrnn.training.keeper import Keeper, polite_interrupts
from setrnn.training.optimizer import make_optimizer, set_learning_rate
from setrnn.training.ranks import find_ranks
from setrnn.training.run_folder import Checkpoint, Position, RunFolder
from setrnn.training.validation import has_valid, validate

if TYPE_CHECKING:
    from setrnn.training.start import TrainOptions

SECONDS_BETWEEN_REPORTS = 0.5  # reading the loss makes the GPU wait


class Trainer:
    """One training run of one network."""

    def __init__(
        self,
        network: Network,
        prepared: Prepared,
        config: Config,
        method: Method,
        device: torch.device,
        documents: TrainingDocuments,
        options: TrainOptions,
        run: RunFolder | None = None,
    ) -> None:
        """Prepare to train a network that is on a device; without a run, nothing is written."""
        self.network, self.prepared, self.config, self.method = network, prepared, config, method
        self.device, self.options, self.run = device, options, run
        assert method.objective is not None, "only networks are trained in epochs"
        self.settings, self.objective = config.training, method.objective
        self.train = documents
        self.optimizer = make_optimizer(network, config)
        self.keeper = Keeper(network, self.optimizer, self.settings, run)
        self.ranks = find_ranks()
        self.gradients = Gradients(
            network,
            device,
            find_objective(method.objective),
            self.settings.orders or config.search.beam_width,
            self.settings.precision,
            self.ranks,
        )
        self._reported_at = 0.0

    def fit(self, checkpoint: Checkpoint | None = None) -> None:
        """Train to the end; the network then has the weights of the best epoch."""
        torch.manual_seed(self.config.seed)
        if checkpoint is not None:
            self.keeper.restore(checkpoint)
            # The patience or the budget may have changed.
            self.position.is_finished = self.ranks.any(self._is_finished())
        self.ranks.copy_first(self.network.state_dict().values())
        if self.run is not None:  # all processes have read its files by now
            self.run.begin(checkpoint)
        # Without a folder there is nothing to save: Ctrl-C raises KeyboardInterrupt as usual.
        polite = polite_interrupts() if self.run is not None else nullcontext(lambda: False)
        ranks = self.ranks  # a keeper that refers to its trainer would keep files open
        with polite as is_asked:
            self.keeper.is_asked_to_stop = lambda: ranks.any(is_asked())
            while not self.position.is_finished:
                self._train_epoch()
                self._end_epoch()
        self.keeper.load_best()

    def time_steps(self, seconds: float) -> float:
        """Train on the first batches for some seconds; return the seconds per document.

        The first batch is not counted: it takes longer. This is for a network that is dropped
        afterwards.
        """
        torch.manual_seed(self.config.seed)
        batches = self._batches()
        set_learning_rate(self.optimizer, 0.0, self.settings)
        self.network.train()
        start, n_documents = time.perf_counter(), 0
        with self.gradients.threads():
            for number, rows in enumerate(batches):
                loss = float(self._step(self._make_batch(rows)))  # waits for the device
                now = time.perf_counter()
                if number == 0 and len(batches) > 1:
                    start = now
                    continue
                n_documents += len(rows)
                if not isfinite(loss) or now - start >= seconds:
                    break
        return (time.perf_counter() - start) / max(n_documents, 1)

    def _train_epoch(self) -> None:
        """Train on all documents once, or on those left of a resumed epoch."""
        position, batches = self.position, self._batches()
        start, n_before = time.perf_counter(), position.n_documents
        # One sum over the whole epoch: a stop in between changes no bit of it.
        kind = sum_type(self.device)
        loss_sum = torch.tensor(position.loss_sum, dtype=kind, device=self.device)
        self.network.train()
        way_out = (
            f"Lower training.batch_size (now {self.settings.batch_size}) and resume with --resume, "
            "or train again with a lower text.windows, text.max_words or search.beam_width."
        )
        with explain_full_gpu("A batch", way_out), self.gradients.threads():
            left = batches[position.batch :]
            for rows, pieces in zip(left, prefetch(self._make_batch, left), strict=True):
                done = position.epoch + (position.batch + 0.5) / len(batches)
                set_learning_rate(self.optimizer, done / self.settings.epochs, self.settings)
                loss_sum += self._step(pieces, len(rows)) * len(rows)
                position.batch += 1
                position.n_documents += len(rows)
                is_stopping = self.keeper.is_asked_to_stop()
                if is_stopping or position.batch == len(batches) or self._is_time_to_report():
                    position.loss_sum = float(loss_sum)
                    seconds = time.perf_counter() - start
                    position.documents_per_second = (position.n_documents - n_before) / seconds
                    self._report(is_stopping)

    def _step(self, pieces: list[Batch], n_documents: int | None = None) -> Tensor:
        """Find orders of each set, and raise the objective's value of their p(s | x).

        The pieces are those of this process, of a batch of `n_documents` (None: of all of them).
        """
        loss = self.gradients.compute(pieces, n_documents)
        if self.settings.clip_norm:
            clip_grad_norm_(self.network.parameters(), self.settings.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.keeper.average.update()
        return loss

    def _end_epoch(self) -> None:
        """Measure on valid, keep the best weights, and move to the next epoch."""
        position, metric = self.position, self.settings.metric
        self.keeper.check_weights()
        scores = self._validate()
        is_better = is_best(scores, position, metric)
        if is_better:
            self.keeper.keep_best(scores[metric])
        progress = self._progress(self.objective, scores, is_better)
        row = {
            "epoch": position.epoch + 1,
            "objective": self.objective,
            "loss": self._loss(),
            "documents_per_second": round(position.documents_per_second, 1),
        }
        position.history.append(row | scores)
        position.start_epoch(position.epoch + 1)
        position.is_finished = self.ranks.any(self._is_finished())
        if self.run is not None:
            self.run.write_epochs(position.history)
        if position.is_finished or self.keeper.is_cheap():
            self.keeper.save()
        self.options.on_progress(progress)
        if not position.is_finished and self.keeper.is_asked_to_stop():
            self.keeper.stop()

    def _validate(self) -> dict[str, float]:
        """Measure on valid; a run stopped here is resumed between training and measuring."""
        if not has_valid(self.prepared):
            return {}

        def between_batches() -> None:
            if self.keeper.is_asked_to_stop():
                self.keeper.stop()
            self.options.on_progress(self._progress("measuring"))

        way_out = "Stop other work on the GPU, and resume with --resume."
        with explain_full_gpu("Measuring on the valid part", way_out):
            network = self.keeper.average.network
            system = find_system(self.method)(network, self.config, self.device)
            return validate(
                fit_empty_set(system, self.prepared, self.config.model.empty_sets),
                self.prepared,
                self.options.rule or self.method.rule,
                self.settings.valid_documents,
                between_batches,
                self.ranks,
            )

    def _is_time_to_report(self) -> bool:
        is_time = time.perf_counter() - self._reported_at >= SECONDS_BETWEEN_REPORTS
        return is_time or self.keeper.is_due()

    def _report(self, is_stopping: bool) -> None:
        """Check the loss, stop if asked to, save if it is due, and report the progress."""
        if not isfinite(self.position.loss_sum):
            raise self.keeper.not_finite()
        if is_stopping:
            self.keeper.stop()
        if self.keeper.is_due():
            self.keeper.save()
        self.options.on_progress(self._progress(self.objective))
        self._reported_at = time.perf_counter()

    def _is_finished(self) -> bool:
        return is_finished(self.position, self.settings) or is_out_of_time(
            self.position, self.keeper.seconds(), self.options.max_seconds
        )

    @property
    def position(self) -> Position:
        """How far the run has come."""
        return self.keeper.position

    def _batches(self) -> list[npt.NDArray[np.int64]]:
        """Return the rows of each batch of the current epoch; a resumed epoch has the same."""
        random = np.random.default_rng((self.config.seed, self.position.epoch))
        lengths, sizes = self.train.tokens.lengths, self.train.set_sizes
        return training_batches(lengths, sizes, self.settings.batch_size, random)

    def _make_batch(self, rows: npt.NDArray[np.int64]) -> list[Batch]:
        """Return the pieces of a batch that this process computes."""
        cut = self.gradients.cut(rows, self.train.set_sizes[rows])
        return [self.train.batch(piece).to(self.device) for piece in cut]

    def _loss(self) -> float:
        return self.position.loss_sum / max(self.position.n_documents, 1)

    def _progress(
        self, activity: str, scores: dict[str, float] | None = None, is_best: bool = False
    ) -> Progress:
        epoch = Epoch(
            number=self.position.epoch + 1,
            n_epochs=self.settings.epochs,
            activity=activity,
            loss=self._loss(),
            documents_per_second=self.position.documents_per_second,
            scores=scores,
            is_best=is_best,
        )
        n_done = self.position.epoch * len(self.train) + self.position.n_documents
        return Progress("training", n_done, self.settings.epochs * len(self.train), epoch=epoch)


def list_training_documents(prepared: Prepared, config: Config) -> TrainingDocuments:
    """Return the documents of the train part."""
    part = prepared.split("train")
    incomplete = Incomplete.of(part, len(prepared.labels), config.training.forgotten)
    return TrainingDocuments(part.tokens, part.labels, incomplete=incomplete)


def is_best(scores: Mapping[str, float], position: Position, metric: str) -> bool:
    """Return whether scores are better than those of the best epoch; False without scores."""
    is_first = position.best_epoch == 0
    return metric in scores and (is_first or is_better(scores[metric], position.best_value, metric))


def is_finished(position: Position, settings: TrainingSettings) -> bool:
    """Return whether all epochs are done, or `training.patience` epochs since the best one."""
    n_waited = position.epoch - position.best_epoch if position.best_epoch else 0
    return position.epoch == settings.epochs or 0 < settings.patience <= n_waited


def is_out_of_time(position: Position, seconds: float, max_seconds: float | None) -> bool:
    """Return whether another epoch would exceed the time budget."""
    if max_seconds is None or position.epoch == 0:
        return False
    return seconds * (position.epoch + 1) / position.epoch > max_seconds
