"""Start a training run: device, word vectors, network, and what names the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setrnn.config import Config, VectorSettings, settings_hash, to_dict
from setrnn.data.prepared import Prepared
from setrnn.data.vectors import word_vectors
from setrnn.errors import ConfigError, nearest_name
from setrnn.model.network import Network
from setrnn.recurrent import RecurrentSystem
from setrnn.training.loop import PRECISIONS, OnProgress, Trainer
from setrnn.training.recipe import Recipe
from setrnn.training.run_folder import RunFolder

DEVICES = ("auto", "cpu", "cuda")


def find_device(name: str) -> torch.device:
    """Return a device by its name: `auto` is the GPU where there is one."""
    if name not in DEVICES:
        raise ConfigError(f"There is no device '{name}'. {nearest_name(name, DEVICES)}")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("There is no GPU that torch can use here. Use --device cpu.")
    return torch.device(name)


def train_recurrent(
    prepared: Prepared,
    config: Config,
    recipe: Recipe,
    method: str,
    device: str = "auto",
    run_folder: Path | None = None,
    resume: bool = False,
    on_progress: OnProgress = lambda progress: None,
    on_vectors: Callable[[str, float], None] = lambda message, share: None,
) -> tuple[RecurrentSystem, list[dict[str, Any]]]:
    """Train a recurrent system on the train part, choosing the best epoch on the valid part.

    Returns the system, and a row of measures for each epoch.
    """
    from lightning.fabric import Fabric

    place = find_device(device)
    if place.type == "cpu" and config.training.precision == "float16":
        raise ConfigError("training.precision float16 needs a GPU. Use float32 or bfloat16.")
    torch.set_float32_matmul_precision("high")
    precision: Any = PRECISIONS[config.training.precision]
    fabric = Fabric(accelerator=place.type, devices=1, precision=precision)
    vectors = _vectors(prepared, config.vectors, on_vectors)
    torch.manual_seed(config.seed)
    n_tokens = prepared.encoder.n_tokens
    network = Network(vectors[:n_tokens], vectors[n_tokens:], config.model, decoder=recipe.decoder)
    network.to(fabric.device)
    run = None
    if run_folder is not None:
        identity = {
            "method": method,
            "config": to_dict(config),
            "data": settings_hash(prepared.description),
        }
        run = RunFolder(run_folder, identity)
    trainer = Trainer(network, prepared, config, recipe, fabric, run, on_progress)
    trainer.fit(resume)
    system = RecurrentSystem(network.eval(), config, fabric.device)
    return system, trainer.position.history


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
