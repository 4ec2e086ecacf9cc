"""Pretrained transformers: a folder, or a name on the Hugging Face hub."""

# L names, M hidden size

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
# Heads on top of an encoder, which are not used: a file may lack their weights.
HEADS = ("pooler.",)


def check_pretrained(config: Config) -> None:
    """Refuse a folder without a usable transformer, before any data is read."""
    path, folder = config.encoder.path, Path(config.encoder.path)
    import_transformers()
    check_place(path)
    if folder.is_dir():
        if not (folder / CONFIG).is_file():
            raise ModelError(f"{path} has no {CONFIG}: it is not the folder of a transformer.")
        if not any((folder / name).is_file() for name in WEIGHTS):
            raise ModelError(
                f"{path} has no weights: {WEIGHTS[0]} is missing. Other formats are not read: "
                "save the transformer again with save_pretrained."
            )
    pretrained_encoder(config.text)
    architecture = _read_config(path)
    if getattr(architecture, "is_encoder_decoder", False):
        raise ModelError(f"{path} is not an encoder: it also writes. Use an encoder such as BERT.")
    if not isinstance(getattr(architecture, "hidden_size", None), int):
        raise ModelError(f"{path} does not read texts: its {CONFIG} has no hidden size.")
    check_length(_build_without_values(path, architecture), config)


def check_length(transformer: nn.Module, config: Config) -> None:
    """Refuse texts that are longer than the transformer can read."""
    longest, path = find_longest(transformer), config.encoder.path
    if longest is not None and config.text.max_tokens > longest:
        raise ConfigError(
            f"{path} reads at most {longest} tokens, text.max_tokens is {config.text.max_tokens}. "
            f"Lower it: --set text.max_tokens={longest}"
        )


def find_longest(transformer: nn.Module) -> int | None:
    """Return how many tokens a transformer can read at once; None if there is no limit.

    Some architectures (RoBERTa and its descendants, MPNet) count positions from the one after
    their padding. Their embedding of positions has a padding index.
    """
    longest = getattr(transformer.config, "max_position_embeddings", None)
    if not isinstance(longest, int):
        return None
    shifts = [
        module.padding_idx + 1
        for name, module in transformer.named_modules()
        if "position" in name and isinstance(getattr(module, "padding_idx", None), int)
    ]
    return longest - max(shifts, default=0)


def load_pretrained(path: str, n_tokens: int = 0) -> nn.Module:
    """Load a transformer in full precision; it must know at least `n_tokens` token ids."""
    transformers = import_transformers()
    try:
        with without_reports(transformers):
            transformer, found = transformers.AutoModel.from_pretrained(
                path, use_safetensors=True, output_loading_info=True
            )
    except Exception as error:  # whatever a broken file or the network may raise
        raise _cannot_load(path, "weights") from error
    missing = [name for name in found["missing_keys"] if not name.startswith(HEADS)]
    if missing:
        raise ModelError(
            f"The weights of {path} do not match its {CONFIG}: {len(missing)} are missing, such as "
            f"{min(missing)}."
        )
    n_known = len(transformer.get_input_embeddings().weight)
    if n_known < n_tokens:
        raise ModelError(
            f"{path} has {n_known:,} embeddings, but its tokenizer has {n_tokens:,} tokens."
        )
    loaded: nn.Module = transformer
    return loaded.float()


def average_names(transformer: nn.Module, names: Ragged) -> Tensor:
    """Return a vector for each name, the mean of the embeddings of its subwords: (L, M).

    The vectors are centred and scaled like random ones: embeddings have a large common part.
    """
    embeddings: Tensor = transformer.get_input_embeddings().weight.detach()  # type: ignore[operator]
    ids = torch.from_numpy(names.values).long()
    offsets = torch.from_numpy(names.offsets[:-1])
    vectors = nn.functional.embedding_bag(ids, embeddings, offsets, mode="mean")
    vectors = vectors - vectors.mean(0)
    scale = vectors.square().mean().sqrt()
    if not scale:  # a single label, or names with the same subwords
        return torch.randn_like(vectors) * 0.1
    return vectors * (0.1 / scale)


def _read_config(path: str) -> Any:  # noqa: ANN401 (transformers' own type)
    transformers = import_transformers()
    try:
        with without_reports(transformers):
            return transformers.AutoConfig.from_pretrained(path)
    except Exception as error:  # whatever a broken file or the network may raise
        raise _cannot_load(path, CONFIG) from error


def _build_without_values(path: str, architecture: Any) -> nn.Module:  # noqa: ANN401
    """Build a transformer that has shapes and no weights: it takes milliseconds."""
    transformers = import_transformers()
    try:
        with without_reports(transformers), torch.device("meta"):
            transformer: nn.Module = transformers.AutoModel.from_config(architecture)
    except Exception as error:  # whatever a config for another version may raise
        raise _cannot_load(path, CONFIG) from error
    return transformer


def _cannot_load(path: str, what: str) -> ModelError:
    if Path(path).is_dir():
        return ModelError(f"The {what} of {path} cannot be read: damaged, or an unknown kind.")
    return ModelError(
        f"'{path}' is not a folder, and its {what} could not be downloaded from the Hugging Face "
        "hub. Check the name and the connection, or give a folder as encoder.path."
    )
