"""Start a training run: the device, the network, and what identifies the run."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from setrnn.config import Config, settings_hash, to_dict
from setrnn.data.batches import TrainingDocuments
from setrnn.data.prepared import Prepared
from setrnn.errors import ConfigError
from setrnn.methods import Method, find_method
from setrnn.model.devices import find_device
from setrnn.model.encoders import find_encoder
from setrnn.model.network import make_network, rebuild_network
from setrnn.progress import OnProgress, ignore_progress
from setrnn.systems.empty_set import fit_empty_set
from setrnn.systems.registry import find_system
from setrnn.systems.system import System
from setrnn.training.failures import check_data, check_incomplete, check_set_sizes
from setrnn.training.loop import (
    Trainer,
    change_epochs,
    count_first_epochs,
    list_training_documents,
)
from setrnn.training.optimizer import speed_up_rows
from setrnn.training.ranks import find_ranks
from setrnn.training.run_folder import FIRST, LAST, RunFolder, has_run, read_state
from setrnn.training.wide import add_wide

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Start:
    """The weights of a trained network, to train it further."""

    weights: Mapping[str, Tensor]
    new_rows: Mapping[str, Tensor] = field(default_factory=dict)  # of weights that are added
    times_rate: float = 1.0  # how much faster these rows learn
    fits_wide: bool = True  # whether wide evidence is fitted again, on the train part

    @classmethod
    def of(cls, system: System) -> Start:
        """Start from a network of the same kind that was trained on the same documents."""
        arrays = system.arrays()
        weights = {name: torch.tensor(each) for name, each in arrays.items()}
        return cls(weights, fits_wide=False)


@dataclass(frozen=True)
class TrainOptions:
    """How to train, apart from the settings: the device, the run on disk, and the progress."""

    device: str = "auto"
    run_folder: Path | None = None  # for checkpoints and logs; None keeps none
    resume: bool = False
    wait: bool = False  # if another process trains in that folder, until it ends
    max_seconds: float | None = None  # no epoch begins that would probably exceed them
    on_progress: OnProgress = ignore_progress
    rule: str | None = None  # measures on valid, and predicts; None for the method's own
    documents: TrainingDocuments | None = None  # to train on; None for the train part
    start: Start | None = None  # None for a new network
    identity: Mapping[str, str] = field(default_factory=dict)  # what else decides what is trained


@dataclass(frozen=True)
class Trained:
    """A trained system, with notes on its training."""

    system: System
    notes: dict[str, Any] = field(default_factory=dict)


def train_system(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions
) -> Trained:
    """Train any system on the train part of prepared data."""
    if method.is_network:
        trained = train_network(method, prepared, config, options)
    else:
        trained = Trained(find_system(method).train(prepared, config, options.on_progress))
    system = fit_empty_set(trained.system, prepared, config.model.empty_sets)
    return replace(trained, system=system)


def check_method(method: Method, config: Config) -> None:
    """Refuse settings that a method cannot be trained with, before any data is read."""
    if method.is_mixture:
        raise ConfigError(
            f"A {method.name} is made from trained models. Train some, then mix them: setrnn mix "
            "MODEL... --data DATA --out MODEL"
        )
    if method.is_network:
        find_encoder(config.encoder.name).check(config)


def train_network(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions
) -> Trained:
    """Train a network on the train part, choosing the best epoch on the valid part.

    The notes hold a row of measures per epoch, the number of the best epoch (0 without a valid
    part: the last epoch is used then), and the seconds that training took.
    """
    find_device(options.device)  # raises if there is none
    check_data(prepared, config, has_own_tokenizer=options.start is not None)
    check_set_sizes(prepared, find_system(method).max_training_labels, method.name)
    check_incomplete(prepared, method)
    count_first_epochs(method, config.training)  # raises if an objective gets no epoch
    run = checkpoint = None
    first: dict[str, Any] = {}
    if options.run_folder is not None:
        identity = identify_run(prepared, config, method.name, options.identity)
        run = RunFolder(options.run_folder, identity)
        find_ranks().any(False)  # all wait until the first has written what it was writing
        checkpoint = run.find(options.resume)
    if run is not None and checkpoint is not None:
        change_epochs(checkpoint, method, config.training, run.folder)
    starts_from_other = method.first_method is not None and options.start is None
    if starts_from_other and config.training.random_start == "trained":
        is_begun = checkpoint is not None
        options, first = train_first(method, prepared, config, options, is_begun)
    trainer = make_trainer(method, prepared, config, options, run)
    trainer.fit(checkpoint)
    position, network = trainer.position, trainer.network
    notes = {
        "epochs": position.history,
        "best_epoch": position.best_epoch,
        "training_seconds": round(position.seconds, 2),
        **first,
    }
    return Trained(find_system(method)(network.eval(), config, trainer.device), notes)


def train_first(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions, is_begun: bool
) -> tuple[TrainOptions, dict[str, Any]]:
    """Train the network that a method starts from; return options to start from its best epoch.

    Returns also a note of its epochs. If the method's own run has begun, there is nothing to train.
    """
    assert method.first_method is not None
    other = find_method(method.first_method)
    folder = None if options.run_folder is None else options.run_folder / FIRST
    if is_begun:
        assert folder is not None
        epochs = read_state(folder / LAST).position.history if has_run(folder) else []
        return options, {"first_epochs": epochs}
    if folder is not None and not options.resume and find_ranks().is_first:
        shutil.rmtree(folder, ignore_errors=True)
    _log.info("%s starts from %s, which is trained first.", method.name, other.name)
    limit = options.max_seconds
    first_options = replace(
        options, run_folder=folder, max_seconds=None if limit is None else limit / 2
    )
    first = train_network(other, prepared, config, first_options)
    left = None if limit is None else max(limit - first.notes["training_seconds"], 0.0)
    notes = {"first_epochs": first.notes["epochs"]}
    return replace(options, start=Start.of(first.system), max_seconds=left), notes


def make_trainer(
    method: Method,
    prepared: Prepared,
    config: Config,
    options: TrainOptions,
    run: RunFolder | None = None,
) -> Trainer:
    """Build a network on its device, and what trains it."""
    device = find_device(options.device)
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    start = options.start
    if start is None:
        network = make_network(prepared, config, method.decoder, options.on_progress)
    else:
        network = rebuild_network(start.weights, config, method.decoder)
    documents = options.documents or list_training_documents(prepared, config)
    if config.model.wide == "on" and (start is None or start.fits_wide):
        documents = add_wide(network, prepared, documents, config, options.on_progress)
        if start is not None:  # all but the arrays that were fitted
            own = {name: each for name, each in start.weights.items() if not _is_wide(name)}
            network.load_state_dict(own, strict=False)
    trainer = Trainer(
        network.to(device),
        prepared,
        config,
        method,
        device,
        run,
        options.on_progress,
        options.max_seconds,
        documents,
        options.rule,
    )
    if start is not None:
        speed_up_rows(trainer.optimizer, network, start.new_rows, start.times_rate)
    return trainer


def _is_wide(name: str) -> bool:
    """Return whether weights are an array of wide evidence, apart from its scale."""
    return name.startswith("wide.") and name != "wide.scale"


def identify_run(
    prepared: Prepared, config: Config, method: str, more: Mapping[str, str]
) -> dict[str, Any]:
    """Return all that decides what a run trains."""
    settings = to_dict(config)
    if config.model.wide != "on":
        del settings["classical"]
    data = settings_hash(prepared.description)
    return {"method": method, "config": settings, "data": data, **more}
