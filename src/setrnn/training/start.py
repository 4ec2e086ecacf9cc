"""Start a training run: word vectors, network, Fabric, and what names the run."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
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
from setrnn.model.devices import find_device
from setrnn.model.encoders.pretrained import check_architecture, load_pretrained, name_vectors
from setrnn.model.network import Network
from setrnn.search.subset_sums import MOST_LABELS
from setrnn.systems import SYSTEMS, NeuralSystem
from setrnn.training.failures import check_data, check_set_sizes
from setrnn.training.loop import Trainer
from setrnn.training.options import TrainOptions
from setrnn.training.recipe import Recipe
from setrnn.training.run_folder import RunFolder

if TYPE_CHECKING:
    from lightning.fabric import Fabric

MANY_DOCUMENTS = 10_000  # from which on word vectors are frozen, unless asked otherwise
PRECISIONS = {"float32": "32-true", "bfloat16": "bf16-mixed", "float16": "16-mixed"}


def train_network(
    prepared: Prepared, config: Config, recipe: Recipe, method: str, options: TrainOptions
) -> tuple[NeuralSystem, dict[str, Any]]:
    """Train a network on the train part, choosing the best epoch on the valid part.

    Returns the system, and what is worth noting: a row of measures for each epoch, which of
    them is the best (0 without a valid part: then it is the last), and the seconds it took.
    """
    place = find_device(options.device)
    check_data(prepared, config)
    if recipe.decoder == "order-free":
        check_set_sizes(prepared, MOST_LABELS, method)
    recipe.n_first_epochs(config.training)  # refused now if an objective gets no epoch
    run = checkpoint = None
    if options.run_folder is not None:
        run = RunFolder(options.run_folder, identity_of(prepared, config, method))
        checkpoint = run.find(options.resume)
    fabric = make_fabric(place, config.training.precision)
    network = _make_network(prepared, config, recipe, options).to(fabric.device)
    trainer = Trainer(
        network, prepared, config, recipe, fabric, run, options.on_progress, options.max_seconds
    )
    trainer.fit(checkpoint)
    position = trainer.position
    notes = {
        "epochs": position.history,
        "best_epoch": position.best_epoch,
        "training_seconds": round(position.seconds, 2),
    }
    return SYSTEMS[recipe.decoder](network.eval(), config, fabric.device), notes


def _make_network(
    prepared: Prepared, config: Config, recipe: Recipe, options: TrainOptions
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
        return Network(transformer, labels, settings, "transformer", recipe.decoder)
    vectors = _vectors(prepared, config.vectors, options.on_vectors)
    words, labels = vectors[: encoder.n_tokens], vectors[encoder.n_tokens :]
    settings = replace(settings, word_vectors=_tuned_or_frozen(prepared, config))
    torch.manual_seed(config.seed)
    return Network(words, labels, settings, decoder=recipe.decoder)


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


def _vectors(
    prepared: Prepared, settings: VectorSettings, on_vectors: Callable[[str, float], None]
) -> Tensor:
    """Return a vector for each token and label: learned before, or random."""
    if settings.source == "none":
        n_rows = prepared.encoder.n_tokens + len(prepared.labels)
        random = np.random.default_rng(settings.seed)
        vectors = random.normal(0, 0.1, (n_rows, settings.dimensions)).astype(np.float32)
        vectors[0] = 0.0  # padding
        return torch.from_numpy(vectors)
    return torch.from_numpy(np.array(word_vectors(prepared, settings, on_vectors)))
