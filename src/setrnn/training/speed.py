"""Measure how fast a network trains and predicts, on its first batches."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch

from setrnn.config import Config
from setrnn.data.prepared import Prepared
from setrnn.methods import Method
from setrnn.model.devices import find_device
from setrnn.systems.registry import find_system
from setrnn.training.start import TrainOptions, make_fabric, make_trainer
from setrnn.training.validation import has_valid, validate

VALID_DOCUMENTS = 32
MEASURING_SHARE, LEAST_MEASURED = 0.25, 300  # of the time of training; documents per epoch


@dataclass(frozen=True)
class Speed:
    """The seconds that a network takes per document."""

    training: float
    measuring: float  # on valid; 0 without a valid part

    def fit_measuring(self, prepared: Prepared, config: Config) -> Config:
        """Return the settings with so few valid documents that measuring takes a small share."""
        n_train = prepared.description["n_documents"]["train"]
        n_fit = int(MEASURING_SHARE * self.training * n_train / max(self.measuring, 1e-9))
        most = min(config.training.valid_documents, max(n_fit, LEAST_MEASURED))
        return replace(config, training=replace(config.training, valid_documents=most))

    def epoch_seconds(self, prepared: Prepared, config: Config) -> float:
        """Return the seconds that one epoch takes, with its measuring on valid."""
        n_documents: dict[str, int] = prepared.description["n_documents"]
        n_valid = min(n_documents.get("valid", 0), config.training.valid_documents)
        return self.training * n_documents["train"] + self.measuring * n_valid


def measure_speed(
    method: Method,
    prepared: Prepared,
    config: Config,
    options: TrainOptions,
    seconds: float,
    n_threads: int | None = None,
) -> Speed:
    """Train a network on its first batches for some seconds, measure it, and drop it.

    The number of threads is that of the process that will train it; as it is if not given.
    """
    n_before = torch.get_num_threads()
    torch.set_num_threads(n_threads or n_before)
    try:
        return _measure(method, prepared, config, options, seconds)
    finally:
        torch.set_num_threads(n_before)


def _measure(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions, seconds: float
) -> Speed:
    fabric = make_fabric(find_device(options.device), config.training.precision)
    config = replace(config, model=replace(config.model, wide="off"))  # fitting br takes longer
    trainer = make_trainer(method, prepared, config, options, fabric)
    training = trainer.time_steps(seconds)
    if not has_valid(prepared):
        return Speed(training, 0.0)
    system = find_system(method)(trainer.network.eval(), config, fabric.device)
    n_documents = min(VALID_DOCUMENTS, prepared.description["n_documents"]["valid"])
    start = time.perf_counter()
    validate(system, prepared, options.rule or method.rule, n_documents)
    return Speed(training, (time.perf_counter() - start) / n_documents)
