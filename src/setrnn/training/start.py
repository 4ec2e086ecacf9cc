"""Start a training run: the device, the network, and what identifies the run."""

from __future__ import annotations

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
from setrnn.data.text.subwords import check_same_tokenizer
from setrnn.errors import ConfigError, DataError
from setrnn.methods import Method, find_method
from setrnn.model.devices import find_device
from setrnn.model.encoders import find_encoder
from setrnn.model.network import make_network, rebuild_network
from setrnn.progress import OnProgress, ignore_progress, log
from setrnn.systems.products import fit_empty_set
from setrnn.systems.registry import find_system
from setrnn.systems.system import System
from setrnn.training.loop import Trainer, list_training_documents
from setrnn.training.optimizer import speed_up_rows
from setrnn.training.ranks import find_ranks
from setrnn.training.run_folder import FIRST, RunFolder, read_history

# Objectives that compare the labels of a model with a whole set.
NO_SET_PROBABILITY = ("optimal-completion", "set-reward")


@dataclass(frozen=True)
class Start:
    """The weights of a trained network, to train it further."""

    weights: Mapping[str, Tensor]
    new_rows: Mapping[str, Tensor] = field(default_factory=dict)  # of weights that are added
    times_rate: float = 1.0  # how much faster these rows learn

    @classmethod
    def of(cls, system: System) -> Start:
        """Start from a network of the same kind that was trained on the same documents."""
        arrays = system.arrays()
        return cls({name: torch.tensor(each) for name, each in arrays.items()})


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
    keep_run: bool = True  # once the model is written


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


def check_documents(method: Method, prepared: Prepared, config: Config) -> None:
    """Refuse training documents that a network cannot be trained on."""
    train = prepared.split("train")
    if not len(train) or not len(prepared.labels):
        what = "labels" if len(train) else "documents"
        raise DataError(f"The train part of {prepared.name} has no {what}: nothing to learn.")
    longest = int(train.labels.lengths.argmax())
    largest, most = int(train.labels.lengths[longest]), find_system(method).max_training_labels
    if largest > config.model.max_labels:
        name = train.ids(longest, longest + 1)[0]
        raise DataError(
            f"Document '{name}' of train has {largest} labels, more than model.max_labels "
            f"({config.model.max_labels}). Raise it: --set model.max_labels={largest}"
        )
    if most is not None and largest > most:
        raise DataError(
            f"A document of train has {largest} labels, but '{method.name}' can be trained on at "
            f"most {most} per document. Train set-rnn instead."
        )
    # A method from outside may have any objective: that of each set is taken as its log p.
    if train.unknown is not None and method.objective in NO_SET_PROBABILITY:
        raise DataError(
            f"{int((~train.is_complete).sum()):,} documents of train have labels that are not "
            f"known, and '{method.name}' needs whole label sets. Train set-rnn instead, or leave "
            "these documents out."
        )


def train_network(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions
) -> Trained:
    """Train a network on the train part, choosing the best epoch on the valid part.

    The notes hold a row of measures per epoch, the number of the best epoch (0 without a valid
    part: the last epoch is used then), and the seconds that training took.
    """
    find_device(options.device)  # raises if there is none
    if options.start is None:  # else the encoder of its tokenizer may be gone
        check_same_tokenizer(prepared.folder, config, prepared.encoder)
    check_documents(method, prepared, config)
    run = checkpoint = None
    if options.run_folder is not None:
        identity = identify_run(prepared, config, method.name, options.identity)
        run = RunFolder(options.run_folder, identity)
        find_ranks().any(False)  # all wait until the first has written what it was writing
        checkpoint = run.find(options.resume)
    notes: dict[str, Any] = {}
    if method.first_method is not None and options.start is None:
        if checkpoint is None:
            options, notes["first_epochs"] = train_first(method, prepared, config, options)
        else:  # its own epochs have begun
            assert options.run_folder is not None
            notes["first_epochs"] = read_history(options.run_folder / FIRST)
    trainer = make_trainer(method, prepared, config, options, run)
    trainer.fit(checkpoint)
    position, network = trainer.position, trainer.network
    notes |= {
        "epochs": position.history,
        "best_epoch": position.best_epoch,
        "training_seconds": round(position.seconds, 2),
    }
    return Trained(find_system(method)(network.eval(), config, trainer.device), notes)


def train_first(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions
) -> tuple[TrainOptions, list[dict[str, Any]]]:
    """Train the network that a method starts from.

    Return options to start from its best epoch in the time that is left, and a row per epoch.
    """
    assert method.first_method is not None
    other = find_method(method.first_method)
    folder = None if options.run_folder is None else options.run_folder / FIRST
    if folder is not None and not options.resume and find_ranks().is_first:
        shutil.rmtree(folder, ignore_errors=True)
    log.info("%s starts from %s, which is trained first.", method.name, other.name)
    limit = options.max_seconds
    first_options = replace(
        options, run_folder=folder, max_seconds=None if limit is None else limit / 2
    )
    first = train_network(other, prepared, config, first_options)
    left = None if limit is None else max(limit - first.notes["training_seconds"], 0.0)
    options = replace(options, start=Start.of(first.system), max_seconds=left)
    return options, first.notes["epochs"]


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
    network = network.to(device)
    trainer = Trainer(network, prepared, config, method, device, documents, options, run)
    if start is not None:
        speed_up_rows(trainer.optimizer, network, start.new_rows, start.times_rate)
    return trainer


def identify_run(
    prepared: Prepared, config: Config, method: str, more: Mapping[str, str]
) -> dict[str, Any]:
    """Return all that decides what a run trains."""
    settings = to_dict(config)
    del settings["classical"]
    data = settings_hash(prepared.description)
    return {"method": method, "config": settings, "data": data, **more}
