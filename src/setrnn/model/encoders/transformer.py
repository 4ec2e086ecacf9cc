"""A pretrained transformer that reads subwords."""

# B documents, T subwords, M hidden size, L labels

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from setrnn.config import Config, ModelSettings
from setrnn.data.ragged import Ragged
from setrnn.data.subwords import SubwordEncoder, import_transformers, without_reports
from setrnn.model.encoders.pretrained import (
    average_names,
    check_length,
    check_pretrained,
    load_pretrained,
)
from setrnn.model.interfaces import Encoding
from setrnn.progress import OnProgress

if TYPE_CHECKING:
    from typing_extensions import Self

    from setrnn.data.prepared import Prepared


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
        if getattr(transformer, "pooler", None) is not None:
            transformer.pooler = None  # type: ignore[assignment]  # its output is not used
        self.transformer = transformer
        if settings.word_vectors == "frozen":
            self._embeddings.requires_grad_(False)
        self.dropout = nn.Dropout(settings.dropout)
        self.register_buffer("architecture", _encode_config(config))

    @classmethod
    def check(cls, config: Config) -> None:
        """Refuse a folder or hub name without a usable transformer."""
        check_pretrained(config)

    @classmethod
    def from_data(
        cls, prepared: Prepared, config: Config, on_progress: OnProgress
    ) -> tuple[Self, Tensor]:
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
    def from_weights(cls, weights: Mapping[str, Tensor], settings: ModelSettings) -> Self:
        """Build the encoder in the shape of saved weights; their values are assigned later."""
        transformers = import_transformers()
        values = json.loads(weights["architecture"].cpu().numpy().tobytes())
        config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
        # Initial values are replaced: drawing them must not advance the generator.
        with torch.random.fork_rng(devices=[]), without_reports(transformers):
            transformer: nn.Module = transformers.AutoModel.from_config(config)
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


def _encode_config(config: Any) -> Tensor:  # noqa: ANN401 (transformers' own type)
    """Return the config as bytes of JSON, without the folder it came from."""
    values = json.loads(config.to_json_string(use_diff=False))
    for name in ("_name_or_path", "dtype", "torch_dtype"):
        values.pop(name, None)
    return torch.tensor(list(json.dumps(values).encode()), dtype=torch.uint8)
