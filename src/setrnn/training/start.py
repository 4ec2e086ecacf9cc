"""Start a training run: word vectors, network, Fabric, and what names the run."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from setrnn.config import Config, VectorSettings, settings_hash, to_dict
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.subwords import SubwordEncoder
from setrnn.data.vectors import word_vectors
from setrnn.errors import ConfigError
from setrnn.methods import Method
from setrnn.model.devices import find_device
from setrnn.model.encoders.pretrained import (
    check_architecture,
    check_pretrained,
    load_pretrained,
    name_vectors,
)
from setrnn.model.network import Network
from setrnn.progress import OnProgress, Progress
from setrnn.search.subset_sums import MOST_LABELS
from setrnn.systems.registry import find_system
from setrnn.training.failures import check_data, check_set_sizes
from setrnn.training.loop import Trainer
from setrnn.training.options import Trained, TrainOptions
from setrnn.training.recipe import count_first_epochs
from setrnn.training.run_folder import RunFolder

if TYPE_CHECKING:
    from lightning.fabric import Fabric

MANY_DOCUMENTS = 10_000  # from which on word vectors are frozen, unless asked otherwise
PRECISIONS = {"float32": "32-true", "bfloat16": "bf16-mixed", "float16": "16-mixed"}


def train_system(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions
) -> Trained:
    """Train any system on the train part of prepared data."""
    if method.is_network:
        return train_network(method, prepared, config, options)
    return Trained(find_system(method).train(prepared, config, options.on_progress))


def check_method(method: Method, config: Config) -> None:
    """Refuse settings that a method cannot be trained with, before any data is read."""
    if method.is_network and config.encoder.is_pretrained:
        check_pretrained(config)


def train_network(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions
) -> Trained:
    """Train a network on the train part, choosing the best epoch on the valid part.

    The notes hold a row of measures per epoch, the number of the best epoch (0 without a valid
    part: the last epoch is used then), and the seconds that training took.
    """
    place = find_device(options.device)
    check_data(prepared, config)
    if method.decoder == "order-free":
        check_set_sizes(prepared, MOST_LABELS, method.name)
    count_first_epochs(method, config.training)  # refused now if an objective gets no epoch
    run = checkpoint = None
    if options.run_folder is not None:
        run = RunFolder(options.run_folder, identity_of(prepared, config, method.name))
        checkpoint = run.find(options.resume)
    fabric = make_fabric(place, config.training.precision)
    network = _make_network(method, prepared, config, options.on_progress).to(fabric.device)
    trainer = Trainer(
        network, prepared, config, method, fabric, run, options.on_progress, options.max_seconds
    )
    trainer.fit(checkpoint)
    position = trainer.position
    notes = {
        "epochs": position.history,
        "best_epoch": position.best_epoch,
        "training_seconds": round(position.seconds, 2),
    }
    return Trained(find_system(method)(network.eval(), config, fabric.device), notes)


def _make_network(
    method: Method, prepared: Prepared, config: Config, on_progress: OnProgress
) -> Network:
    """Build the network as it is before training."""
    encoder, settings = prepared.encoder, config.model
    if config.encoder.is_pretrained:
        assert isinstance(encoder, SubwordEncoder)
        transformer = load_pretrained(config.encoder.path, encoder.n_tokens)
        check_architecture(transformer.config, config)
        torch.manual_seed(config.seed)
        names = Ragged.from_lists(encoder.encode_names(prepared.labels.names))
        labels = name_vectors(transformer, names)
        return Network(transformer, labels, settings, "transformer", method.decoder)
    vectors = _vectors(prepared, config.vectors, on_progress)
    words, labels = vectors[: encoder.n_tokens], vectors[encoder.n_tokens :]
    settings = replace(settings, word_vectors=_tuned_or_frozen(prepared, config))
    torch.manual_seed(config.seed)
    return Network(words, labels, settings, decoder=method.decoder)


def _tuned_or_frozen(prepared: Prepared, config: Config) -> str:
    """Decide what becomes of word vectors: learned from many texts, they are best left alone."""
    if config.vectors.source == "none":  # they mean nothing before they are tuned
        return "tuned"
    if config.model.word_vectors != "auto":
        return config.model.word_vectors
    is_large = prepared.description["n_documents"]["train"] >= MANY_DOCUMENTS
    return "frozen" if is_large else "tuned"


def identity_of(prepared: Prepared, config: Config, method: str) -> dict[str, Any]:
    """Return what makes a run the one it is."""
    settings = to_dict(config)
    del settings["classical"]
    return {"method": method, "config": settings, "data": settings_hash(prepared.description)}


def make_fabric(device: torch.device, precision: str) -> Fabric:
    """Set up Lightning Fabric for one device."""
    if device.type == "cpu" and precision == "float16":
        raise ConfigError("training.precision float16 needs a GPU. Use float32 or bfloat16.")
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    with _quiet_lightning():
        from lightning.fabric import Fabric

        wanted: Any = PRECISIONS[precision]
        return Fabric(accelerator=device.type, devices=1, precision=wanted)


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    """Keep Lightning's tips and remarks from the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import lightning.fabric  # noqa: F401 (its import sets the levels)

        loggers = [logging.getLogger(f"lightning.{part}") for part in ("fabric", "pytorch")]
        levels = [logger.level for logger in loggers]
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _vectors(prepared: Prepared, settings: VectorSettings, on_progress: OnProgress) -> Tensor:
    """Return a vector for each token and label: learned before, or random."""
    if settings.source == "none":
        n_rows = prepared.encoder.n_tokens + len(prepared.labels)
        random = np.random.default_rng(settings.seed)
        vectors = random.normal(0, 0.1, (n_rows, settings.dimensions)).astype(np.float32)
        vectors[0] = 0.0  # padding
        return torch.from_numpy(vectors)

    def report(detail: str, share: float) -> None:
        on_progress(Progress("word vectors", share, 1.0, unit="", detail=detail))

    return torch.from_numpy(np.array(word_vectors(prepared, settings, report)))
