"""Pretrained transformers: a folder, or a name on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from setrnn.config import Config
from setrnn.data.ragged import Ragged
from setrnn.data.subwords import (
    check_place,
    import_transformers,
    pretrained_encoder,
    without_reports,
)
from setrnn.errors import ConfigError, ModelError

CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
# Heads on top of an encoder, which we do not use: a file may lack their weights.
HEADS = ("pooler.",)


def check_pretrained(config: Config) -> None:
    """Refuse a transformer that lacks a part, or is none that reads; before any data is read."""
    path, folder = config.encoder.path, Path(config.encoder.path)
    import_transformers()
    check_place(path)
    if folder.is_dir():
        if not (folder / CONFIG).is_file():
            raise ModelError(f"{path} has no {CONFIG}: it is no folder of a transformer.")
        if not any((folder / name).is_file() for name in WEIGHTS):
            raise ModelError(
                f"{path} has no weights: it lacks {WEIGHTS[0]}. Other formats are not read: save "
                "it once more with save_pretrained."
            )
    pretrained_encoder(config.text)
    check_architecture(_read_config(path), config)


def check_architecture(architecture: Any, config: Config) -> None:  # noqa: ANN401
    """Refuse what is no encoder, and texts longer than it can read."""
    path = config.encoder.path
    if getattr(architecture, "is_encoder_decoder", False):
        raise ModelError(f"{path} is no encoder: it also writes. Name an encoder, such as a BERT.")
    if not isinstance(getattr(architecture, "hidden_size", None), int):
        raise ModelError(f"{path} does not read texts: its {CONFIG} has no hidden size.")
    most = getattr(architecture, "max_position_embeddings", None)
    if isinstance(most, int) and "roberta" in architecture.model_type:
        most -= architecture.pad_token_id + 1  # its positions are counted from there
    if isinstance(most, int) and config.text.max_tokens > most:
        raise ConfigError(
            f"{path} reads {most} tokens at most, text.max_tokens is {config.text.max_tokens}. "
            f"Lower it: --set text.max_tokens={most}"
        )


def load_pretrained(path: str, n_tokens: int = 0) -> nn.Module:
    """Load a transformer with its weights, in full precision; it must know so many token ids."""
    transformers = import_transformers()
    try:
        with without_reports(transformers):
            transformer, found = transformers.AutoModel.from_pretrained(
                path, use_safetensors=True, output_loading_info=True
            )
    except Exception as error:  # whatever a broken file or the network may raise
        raise _not_loaded(path, "weights") from error
    missing = [name for name in found["missing_keys"] if not name.startswith(HEADS)]
    if missing:
        raise ModelError(
            f"{path} has other weights than its {CONFIG} says: {len(missing)} are missing, such "
            f"as {min(missing)}."
        )
    n_known = len(transformer.get_input_embeddings().weight)
    if n_known < n_tokens:
        raise ModelError(f"{path} has {n_known:,} embeddings for the {n_tokens:,} tokens it reads.")
    loaded: nn.Module = transformer
    return loaded.float()


def name_vectors(transformer: nn.Module, names: Ragged) -> Tensor:
    """Return a vector for each name, the mean of its subwords' own: (L, M).

    They are centred and brought to the scale of random ones: input embeddings share most of
    what they are.
    """
    embeddings: Tensor = transformer.get_input_embeddings().weight.detach()  # type: ignore[operator]
    ids = torch.from_numpy(names.values).long()
    offsets = torch.from_numpy(names.offsets[:-1])
    vectors = nn.functional.embedding_bag(ids, embeddings, offsets, mode="mean")
    vectors = vectors - vectors.mean(0)
    scale = vectors.square().mean().sqrt()
    if not scale:  # a single label, or names that all read alike
        return torch.randn_like(vectors) * 0.1
    return vectors * (0.1 / scale)


def _read_config(path: str) -> Any:  # noqa: ANN401 (transformers' own type)
    transformers = import_transformers()
    try:
        with without_reports(transformers):
            return transformers.AutoConfig.from_pretrained(path)
    except Exception as error:  # whatever a broken file or the network may raise
        raise _not_loaded(path, CONFIG) from error


def _not_loaded(path: str, what: str) -> ModelError:
    if Path(path).is_dir():
        return ModelError(f"The {what} of {path} cannot be read: damaged, or not known here.")
    return ModelError(
        f"'{path}' is no folder, and its {what} could not be fetched from the Hugging Face hub. "
        "Check the name and the connection, or give a folder as encoder.path."
    )
