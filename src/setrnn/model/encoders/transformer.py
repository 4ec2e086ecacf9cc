"""A pretrained transformer that reads subwords: from a folder, or by its name on the hub."""

# B documents, T subwords, M hidden size, L labels or names

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from setrnn.config import Config, ModelSettings
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import (
    SubwordEncoder,
    check_place,
    pretrained_encoder,
    quiet_transformers,
)
from setrnn.errors import ConfigError, MissingExtraError, ModelError
from setrnn.model.devices import without_values
from setrnn.model.interfaces import Encoding
from setrnn.progress import OnProgress

if TYPE_CHECKING:
    from setrnn.data.prepared import Prepared

CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
# Heads on top of an encoder, which are not used: a file may lack their weights.
HEADS = ("pooler.",)


class TransformerEncoder(nn.Module):
    """Reads a document with a transformer: its last hidden states, and their mean.

    The transformer's own config is kept among the weights, which are thus all that is needed to
    build it again.
    """

    architecture: Tensor  # the transformer's own config: JSON, as bytes

    def __init__(self, transformer: nn.Module, settings: ModelSettings) -> None:
        super().__init__()
        config: Any = transformer.config
        self.memory_size: int = config.hidden_size
        self.word_size = self.memory_size
        if getattr(transformer, "pooler", None) is not None:
            transformer.pooler = None  # type: ignore[assignment]  # its output is not used
        self.transformer = transformer
        if settings.word_vectors == "frozen":
            self._embeddings.requires_grad_(False)
        self.dropout = nn.Dropout(settings.dropout)
        self.register_buffer("architecture", _encode_config(config))

    @classmethod
    def check(cls, config: Config) -> None:
        """Refuse a folder or hub name without a usable transformer, before any data is read."""
        path, folder = config.encoder.path, Path(config.encoder.path)
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
        with _loading(path, CONFIG) as transformers:
            architecture = transformers.AutoConfig.from_pretrained(path)
        if getattr(architecture, "is_encoder_decoder", False):
            raise ModelError(
                f"{path} is not an encoder: it also writes. Use an encoder such as BERT."
            )
        if not isinstance(getattr(architecture, "hidden_size", None), int):
            raise ModelError(f"{path} does not read texts: its {CONFIG} has no hidden size.")
        with _loading(path, CONFIG) as transformers, torch.device("meta"):  # shapes without weights
            transformer: nn.Module = transformers.AutoModel.from_config(architecture)
        check_length(transformer, config)

    @classmethod
    def from_data(
        cls, prepared: Prepared, config: Config, on_progress: OnProgress
    ) -> tuple[TransformerEncoder, Tensor]:
        """Load the transformer; labels have the mean of the embeddings of their names, (L, M)."""
        subwords = prepared.encoder
        assert isinstance(subwords, SubwordEncoder), "other data is refused before"
        with torch.random.fork_rng(devices=[]):  # loading must not advance the generator
            transformer = load_pretrained(config.encoder.path, subwords.n_tokens)
        check_length(transformer, config)
        names = Ragged.from_lists(subwords.encode_names(prepared.labels.names))
        labels = average_names(transformer, names)
        return cls(transformer, config.model), labels

    @classmethod
    def from_weights(
        cls, weights: Mapping[str, Tensor], settings: ModelSettings
    ) -> TransformerEncoder:
        """Build the encoder in the shape of saved weights; their values are assigned later."""
        # Initial values are replaced: drawing them must not advance the generator.
        with torch.random.fork_rng(devices=[]), quiet_transformers() as transformers:
            try:
                values = json.loads(weights["architecture"].cpu().numpy().tobytes())
                config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
                with _at_most(len(weights)), without_values():
                    outline: nn.Module = transformers.AutoModel.from_config(config)
                _check_shapes(outline, weights)
                transformer: nn.Module = transformers.AutoModel.from_config(config)
            except Exception as error:  # a damaged architecture may raise anything
                raise ValueError(f"the transformer cannot be built: {error}") from error
        return cls(transformer.float(), settings)

    @property
    def _embeddings(self) -> nn.Embedding:
        embeddings: nn.Embedding = self.transformer.get_input_embeddings()  # type: ignore[operator]
        return embeddings

    @property
    def n_tokens(self) -> int:
        """The number of token ids that the encoder knows."""
        return len(self._embeddings.weight)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Encoding:
        """Encode tokens (B, T) of documents with given lengths (B,)."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        is_word = positions < lengths[:, None]  # (B, T)
        read = self.transformer(input_ids=tokens, attention_mask=is_word.long())
        memory = read.last_hidden_state.masked_fill(~is_word[..., None], 0.0)  # (B, T, M)
        # Hundreds of words are too many to add up in half precision.
        exact = torch.promote_types(memory.dtype, torch.float32)
        summary = memory.sum(1, dtype=exact) / lengths[:, None]  # (B, M)
        closed = memory.new_zeros(is_word.shape).masked_fill(~is_word, -torch.inf)
        return Encoding(self.dropout(memory), closed, self.dropout(summary))


@contextmanager
def _at_most(n_weights: int) -> Iterator[None]:
    """Raise ValueError as soon as modules have more weights than were saved, heads aside."""
    n_left = 2 * n_weights + 100

    def count(module: nn.Module, name: str, weight: nn.Parameter | None) -> None:
        nonlocal n_left
        n_left -= 1
        if n_left < 0:
            raise ValueError("it has more layers than were saved")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def _check_shapes(outline: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raise ValueError if a transformer has other shapes than its saved weights."""
    for name, each in outline.state_dict().items():
        saved = weights.get(f"transformer.{name}")
        if saved is not None and saved.shape != each.shape:
            raise ValueError(f"{name} is {tuple(saved.shape)}, not {tuple(each.shape)}")
        if saved is None and not name.startswith(HEADS):
            raise ValueError(f"{name} is missing")


def _encode_config(config: Any) -> Tensor:  # noqa: ANN401 (transformers' own type)
    """Return the config as bytes of JSON, without the folder it came from."""
    values = json.loads(config.to_json_string(use_diff=False))
    for name in ("_name_or_path", "dtype", "torch_dtype"):
        values.pop(name, None)
    return torch.tensor(list(json.dumps(values).encode()), dtype=torch.uint8)


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
    with _loading(path, "weights") as transformers:
        transformer, found = transformers.AutoModel.from_pretrained(
            path, use_safetensors=True, output_loading_info=True
        )
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
    ids = torch.from_numpy(names.values).long().to(embeddings.device)
    offsets = torch.from_numpy(names.offsets[:-1]).to(embeddings.device)
    vectors = nn.functional.embedding_bag(ids, embeddings, offsets, mode="mean")
    vectors = vectors - vectors.mean(0)
    scale = vectors.square().mean().sqrt()
    if not scale:  # a single label, or names with the same subwords
        return torch.randn_like(vectors) * 0.1
    return vectors * (0.1 / scale)


@contextmanager
def _loading(path: str, what: str) -> Iterator[Any]:
    """Yield the library; turn whatever a broken file or the network raises into a ModelError."""
    try:
        with quiet_transformers() as transformers:
            yield transformers
    except MissingExtraError:
        raise
    except Exception as error:
        if Path(path).is_dir():
            raise ModelError(
                f"The {what} of {path} cannot be read: damaged, or an unknown kind."
            ) from error
        raise ModelError(
            f"'{path}' is not a folder, and its {what} could not be downloaded from the Hugging "
            "Face hub. Check the name and the connection, or give a folder as encoder.path."
        ) from error
